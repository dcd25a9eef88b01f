// Loops around the functions that CasADi generated: single derivatives, rollouts, and gradients of rollouts.
//
// The generated C is included, so that the compiler inlines it and sees which outputs are requested. `real` is a double, or
// with LANES > 1 the same quantity of LANES trajectories in one or two vector registers. Arrays of a batch are then
// [block][index][lane]; with one lane that is [trajectory][index].
//
// From the command line: GENERATED (file), LANES, NQ, NV, NH (hinges), NP (parameters), NK (saved for the reverse sweep),
// and which part to compile: VJP or ROLLOUTS.

#include <math.h>

// everything else is hidden, as the linker could substitute another library's function of the same name
#define API extern "C" __attribute__((visibility("default")))

#if LANES == 1

typedef double real;
static inline void sine_cosine(real x, real &s, real &c) { sincos(x, &s, &c); }

#else

#ifdef __AVX512F__
#define WIDTH 8
#define VECTOR_SIN _ZGVeN8v_sin  // of glibc's libmvec
#define VECTOR_COS _ZGVeN8v_cos
#else
#define WIDTH 4
#define VECTOR_SIN _ZGVdN4v_sin
#define VECTOR_COS _ZGVdN4v_cos
#endif
#define REGISTERS (LANES / WIDTH)
#define EACH for (int i = 0; i < REGISTERS; i++)

typedef double vector __attribute__((vector_size(8 * WIDTH)));
extern "C" vector VECTOR_SIN(vector), VECTOR_COS(vector);

struct real {
  vector v[REGISTERS];
  real() = default;
  real(double x) { EACH v[i] = x - vector{}; }
};
static inline real operator+(real a, real b) { EACH a.v[i] += b.v[i]; return a; }
static inline real operator-(real a, real b) { EACH a.v[i] -= b.v[i]; return a; }
static inline real operator*(real a, real b) { EACH a.v[i] *= b.v[i]; return a; }
static inline real operator/(real a, real b) { EACH a.v[i] /= b.v[i]; return a; }
static inline real operator-(real a) { EACH a.v[i] = -a.v[i]; return a; }
static inline real sin(real a) { EACH a.v[i] = VECTOR_SIN(a.v[i]); return a; }
static inline real cos(real a) { EACH a.v[i] = VECTOR_COS(a.v[i]); return a; }
static inline real sqrt(real a) { EACH for (int k = 0; k < WIDTH; k++) a.v[i][k] = sqrt(a.v[i][k]); return a; }
static inline void sine_cosine(real x, real &s, real &c) { s = sin(x), c = cos(x); }

#endif

#define casadi_real real
#include GENERATED

static inline void sines_cosines(const real *q, real *s, real *c) {
  for (int i = 0; i < NH; i++) sine_cosine(q[NQ - NH + i], s[i], c[i]);
}

#ifdef VJP

// gradients of g · qdd with respect to q, qd, tau and the parameters
API void accelerations_vjp(long calls, long count, const real *q, const real *qd, const real *tau, const real *p,
                           const real *g, real *gq, real *gqd, real *gtau, real *gp) {
  real s[NH], c[NH];
  for (long i = 0, k = 0; i < calls; i++, k = k + 1 == count ? 0 : k + 1) {
    sines_cosines(q + k * NQ, s, c);
    const real *in[] = {q + k * NQ, s, c, qd + k * NV, tau + k * NV, p, g + k * NV};
    real *out[] = {gq + k * NQ, gqd + k * NV, gtau + k * NV, gp + k * NP};
    acceleration_vjp(in, out, 0, 0, 0);
  }
}

#endif
#ifdef ROLLOUTS

struct State {
  real q[NQ], qd[NV], s[NH], c[NH], qdd[NV], saved[NK];
};

// new states after x[0] into x[1..steps]; returns the sum of squares of their coordinates
template <bool for_reverse>
static inline real motion(long steps, const real *tau, const real *parameters, State *x) {
  real loss = 0.0, p[NP];
  // a copy that cannot alias: products of parameters alone are then computed once
  for (int i = 0; i < NP; i++) p[i] = parameters[i];
  for (long t = 0; t < steps; t++) {
    sines_cosines(x[t].q, x[t].s, x[t].c);
    const real *in[] = {x[t].q, x[t].s, x[t].c, x[t].qd, tau + t * NV, p};
    real *out[] = {x[t + 1].q, x[t + 1].qd, for_reverse ? x[t].qdd : 0, for_reverse ? x[t].saved : 0};
    step(in, out, 0, 0, 0);
    for (int i = 0; i < NQ; i++) loss = loss + x[t + 1].q[i] * x[t + 1].q[i];
  }
  return loss;
}

static inline void start(const real *x0, State *x) {
  for (int i = 0; i < NQ; i++) x->q[i] = x0[i];
  for (int i = 0; i < NV; i++) x->qd[i] = x0[NQ + i];
}

// losses of `batch` trajectories; `x` holds the states of one at a time
API void rollouts(long batch, long steps, const real *x0, const real *tau, const real *p, real *loss, State *x) {
  for (long b = 0; b < batch; b++) {
    start(x0 + b * (NQ + NV), x);
    loss[b] = motion<false>(steps, tau + b * steps * NV, p + b * NP, x);
  }
}

// the same with gradients with respect to the initial state, the torques of every step and the parameters
API void gradients(long batch, long steps, const real *x0, const real *tau, const real *parameters, real *loss,
                   State *x, real *gx0, real *gtau, real *gparameters) {
  for (long b = 0; b < batch; b++) {
    start(x0 + b * (NQ + NV), x);
    loss[b] = motion<true>(steps, tau + b * steps * NV, parameters + b * NP, x);
    real p[NP], gp[NP], gq[NQ], gqd[NV];
    for (int i = 0; i < NP; i++) p[i] = parameters[b * NP + i], gp[i] = 0.0;
    for (int i = 0; i < NQ; i++) gq[i] = 0.0;
    for (int i = 0; i < NV; i++) gqd[i] = 0.0;
    for (long t = steps - 1; t >= 0; t--) {
      real new_gq[NQ], new_gqd[NV], more[NP];
      for (int i = 0; i < NQ; i++) gq[i] = gq[i] + 2.0 * x[t + 1].q[i];
      const real *in[] = {x[t].q, x[t].s, x[t].c, x[t].qd, x[t].qdd, x[t].saved, p, gq, gqd};
      real *out[] = {new_gq, new_gqd, gtau + (b * steps + t) * NV, more};
      step_vjp(in, out, 0, 0, 0);
      for (int i = 0; i < NQ; i++) gq[i] = new_gq[i];
      for (int i = 0; i < NV; i++) gqd[i] = new_gqd[i];
      for (int i = 0; i < NP; i++) gp[i] = gp[i] + more[i];
    }
    for (int i = 0; i < NQ; i++) gx0[b * (NQ + NV) + i] = gq[i];
    for (int i = 0; i < NV; i++) gx0[b * (NQ + NV) + NQ + i] = gqd[i];
    for (int i = 0; i < NP; i++) gparameters[b * NP + i] = gp[i];
  }
}

#endif
