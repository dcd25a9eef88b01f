// Loops around the functions that CasADi generated: single calls, rollouts, and gradients of rollouts.
//
// The generated C is included, so that the compiler may inline it. From the command line: GENERATED (file), NQ, NV,
// NP (parameters), and which part to compile: VALUE, VJP, ROLLOUTS or NETWORK (with its input size NX).

// static: can be inlined, and cannot clash with another library's function of the same name
#define CASADI_SYMBOL_EXPORT static
#include GENERATED

#ifdef VALUE

// qdd for `calls` states, cycling through `count` of them
void accelerations(long calls, long count, const double *q, const double *qd, const double *tau, const double *p,
                   double *qdd) {
  for (long i = 0, k = 0; i < calls; i++, k = k + 1 == count ? 0 : k + 1) {
    const double *in[] = {q + k * NQ, qd + k * NV, tau + k * NV, p};
    double *out[] = {qdd + k * NV};
    acceleration(in, out, 0, 0, 0);
  }
}

#endif
#ifdef VJP

// gradients of g · qdd with respect to q, qd, tau and the parameters
void accelerations_vjp(long calls, long count, const double *q, const double *qd, const double *tau, const double *p,
                       const double *g, double *gq, double *gqd, double *gtau, double *gp) {
  for (long i = 0, k = 0; i < calls; i++, k = k + 1 == count ? 0 : k + 1) {
    const double *in[] = {q + k * NQ, qd + k * NV, tau + k * NV, p, g + k * NV};
    double *out[] = {gq + k * NQ, gqd + k * NV, gtau + k * NV, gp + k * NP};
    acceleration_vjp(in, out, 0, 0, 0);
  }
}

#endif
#ifdef ROLLOUTS

typedef struct {
  double q[NQ], qd[NV];
} State;

// new states after x0 into x[1..steps]; returns the sum of squares of their coordinates
static double motion(long steps, const double *x0, const double *tau, const double *p, State *x) {
  double loss = 0.0;
  for (int i = 0; i < NQ; i++) x[0].q[i] = x0[i];
  for (int i = 0; i < NV; i++) x[0].qd[i] = x0[NQ + i];
  for (long t = 0; t < steps; t++) {
    const double *in[] = {x[t].q, x[t].qd, tau + t * NV, p};
    double *out[] = {x[t + 1].q, x[t + 1].qd};
    step(in, out, 0, 0, 0);
    for (int i = 0; i < NQ; i++) loss += x[t + 1].q[i] * x[t + 1].q[i];
  }
  return loss;
}

// losses of `batch` trajectories; `x` holds the states of one at a time
void rollouts(long batch, long steps, const double *x0, const double *tau, const double *p, double *loss, State *x) {
  for (long b = 0; b < batch; b++)
    loss[b] = motion(steps, x0 + b * (NQ + NV), tau + b * steps * NV, p + b * NP, x);
}

// the same with gradients with respect to the initial state, the torques of every step and the parameters
void gradients(long batch, long steps, const double *x0, const double *tau, const double *parameters, double *loss,
               State *x, double *gx0, double *gtau, double *gparameters) {
  for (long b = 0; b < batch; b++) {
    const double *p = parameters + b * NP, *torques = tau + b * steps * NV;
    double *gp = gparameters + b * NP, *start = gx0 + b * (NQ + NV);
    loss[b] = motion(steps, x0 + b * (NQ + NV), torques, p, x);
    State g = {0};
    for (int i = 0; i < NP; i++) gp[i] = 0.0;
    for (long t = steps - 1; t >= 0; t--) {
      State new_g;
      double more[NP];
      for (int i = 0; i < NQ; i++) g.q[i] += 2.0 * x[t + 1].q[i];
      const double *in[] = {x[t].q, x[t].qd, torques + t * NV, p, g.q, g.qd};
      double *out[] = {new_g.q, new_g.qd, gtau + (b * steps + t) * NV, more};
      step_vjp(in, out, 0, 0, 0);
      g = new_g;
      for (int i = 0; i < NP; i++) gp[i] += more[i];
    }
    for (int i = 0; i < NQ; i++) start[i] = g.q[i];
    for (int i = 0; i < NV; i++) start[NQ + i] = g.qd[i];
  }
}

#endif
#ifdef NETWORK

// loss and gradient for `calls` inputs, cycling through `count` of them
void networks(long calls, long count, const double *p, const double *x, double *loss, double *gradient) {
  for (long i = 0, k = 0; i < calls; i++, k = k + 1 == count ? 0 : k + 1) {
    const double *in[] = {p, x + k * NX};
    double *out[] = {loss + k, gradient};
    network(in, out, 0, 0, 0);
  }
}

#endif
