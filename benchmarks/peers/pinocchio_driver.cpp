// Loops around Pinocchio's articulated-body algorithm and its analytical derivatives, without Python overhead.

#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/multibody.hpp>

#include <string>

using Eigen::Map;
using Eigen::Vector3d;
using Eigen::VectorXd;
namespace pin = pinocchio;

// only the joint types of the workloads, and mimic joints, which the library requires: with all types compilation takes
// minutes
template <typename Scalar_, int Options_>
struct FewJoints {
  typedef Scalar_ Scalar;
  static constexpr int Options = Options_;
  typedef pin::JointModelMimicTpl<Scalar, Options, ::FewJoints> JointModelMimic;
  typedef pin::JointDataMimicTpl<Scalar, Options, ::FewJoints> JointDataMimic;
  typedef boost::variant<pin::JointModelRX, pin::JointModelRY, pin::JointModelRZ, pin::JointModelFreeFlyer,
                         boost::recursive_wrapper<JointModelMimic>>
      JointModelVariant;
  typedef boost::variant<pin::JointDataRX, pin::JointDataRY, pin::JointDataRZ, pin::JointDataFreeFlyer,
                         boost::recursive_wrapper<JointDataMimic>>
      JointDataVariant;
};
typedef pin::ModelTpl<double, 0, FewJoints> Model;
typedef pin::DataTpl<double, 0, FewJoints> Data;

struct Robot {
  Model model;
  Data data;
  VectorXd q, v, tau;
};

// joint: 0, 1, 2 for a hinge about x, y, z; 3 for a free body
extern "C" Robot *create(long bodies, const long *parent, const long *joint, const double *position,
                         const double *mass, const double *centre, const double *inertia) {
  Model model;
  for (long i = 0; i < bodies; i++) {
    const Model::JointModel kinds[] = {pin::JointModelRX(), pin::JointModelRY(), pin::JointModelRZ(),
                                     pin::JointModelFreeFlyer()};
    const pin::SE3 placement(Eigen::Matrix3d::Identity(), Map<const Vector3d>(position + 3 * i));
    const auto index = model.addJoint(parent[i] + 1, kinds[joint[i]], placement, "joint" + std::to_string(i));
    const Eigen::Matrix3d moments = Map<const Vector3d>(inertia + 3 * i).asDiagonal();
    model.appendBodyToJoint(index, pin::Inertia(mass[i], Map<const Vector3d>(centre + 3 * i), moments),
                            pin::SE3::Identity());
  }
  return new Robot{model, Data(model), VectorXd(model.nq), VectorXd(model.nv), VectorXd(model.nv)};
}

extern "C" void destroy(Robot *robot) { delete robot; }

static inline void load(Robot &r, long k, const double *q, const double *v, const double *tau) {
  r.q = Map<const VectorXd>(q + k * r.model.nq, r.model.nq);
  r.v = Map<const VectorXd>(v + k * r.model.nv, r.model.nv);
  r.tau = Map<const VectorXd>(tau + k * r.model.nv, r.model.nv);
}

// accelerations for `calls` states, cycling through `count` of them
extern "C" void aba(Robot *r, long calls, long count, const double *q, const double *v, const double *tau, double *a) {
  for (long i = 0, k = 0; i < calls; i++, k = k + 1 == count ? 0 : k + 1) {
    load(*r, k, q, v, tau);
    // the library's faster convention for these mechanisms
    const auto &ddq = pin::aba(r->model, r->data, r->q, r->v, r->tau, pin::Convention::WORLD);
    Map<VectorXd>(a + k * r->model.nv, r->model.nv) = ddq;
  }
}

// the same with the Jacobians of the accelerations with respect to q, v and tau
extern "C" void aba_derivatives(Robot *r, long calls, long count, const double *q, const double *v, const double *tau,
                                double *a) {
  for (long i = 0, k = 0; i < calls; i++, k = k + 1 == count ? 0 : k + 1) {
    load(*r, k, q, v, tau);
    pin::computeABADerivatives(r->model, r->data, r->q, r->v, r->tau);
    Map<VectorXd>(a + k * r->model.nv, r->model.nv) = r->data.ddq;
  }
}
