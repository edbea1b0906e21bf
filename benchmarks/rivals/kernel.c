/* A step of online learning on all n coordinates in plain C: the stand-in for what the machine can
 * do. No intrinsics, no threads; gcc vectorises the loops.
 *
 * One pass a step, block by block in the first-level cache: the update with the noise of the step
 * before, new noise, and the sums that the next update needs. The normalisation is deferred into
 * the coefficients of the next update. Noise: xoshiro256++ (Blackman and Vigna 2021) in 16 lanes,
 * Box-Muller with polynomials for log, sin and cos that are right to 3e-11 (in float: to 1e-6).
 *
 * -DFLOAT_NOISE draws and keeps the noise in float; the estimate stays double. */

#include <math.h>
#include <stdint.h>

#define LANES 16
#define BLOCK 512
#define HALF (BLOCK / 2)
#define INLINE static inline __attribute__((always_inline))

typedef struct { uint64_t a[LANES], b[LANES], c[LANES], d[LANES]; } lanes;
typedef struct { double along, ahead, overlap, norm; } sums;
typedef struct { double x, xi, z, cut; } update;

#ifdef FLOAT_NOISE
typedef float real;
typedef uint32_t word; /* a number of the generator gives two words, so two normals */
#define PAIRS 16

/* Box-Muller on two words. The radius may be negative, so that half a turn of angles is enough. */
INLINE void box_muller(word first, word second, real *even, real *odd)
{
    union { float f; int32_t i; uint32_t u; } v, e, r;
    v.f = ((float)first + 0.5f) * 0x1p-32f;
    e.i = (v.i - 0x3f3504f3) >> 23; /* v = m 2^e with m in [sqrt(1/2), sqrt(2)) */
    v.i -= (int32_t)((uint32_t)e.i << 23);
    float t = v.f - 1.0f, p = 0.197907015f;
    p = p * t - 0.322524958f;
    p = p * t + 0.345564121f;
    p = p * t - 0.398266958f;
    p = p * t + 0.499378139f;
    p = p * t - 0.66669212f;
    p = p * t + 1.0000075f;
    p = p * t - 1.99999994f;
    float square = p * t - 1.38629436f * (float)e.i; /* -2 log v */
    r.f = sqrtf(square > 1e-12f ? square : 1e-12f);
    r.u |= second << 31;
    float turn = (float)(int32_t)second * 0x1p-31f; /* [-1, 1) quarter turns */
    float q = turn * turn, s = 0.000151671704f, c = 0.000858134467f;
    s = s * q - 0.00467414384f;
    s = s * q + 0.0796899183f;
    s = s * q - 0.64596376f;
    s = s * q + 1.57079632f;
    c = c * q - 0.0208105152f;
    c = c * q + 0.253650674f;
    c = c * q - 1.2336982f;
    c = c * q + 0.999999953f;
    *even = r.f * c;
    *odd = r.f * (s * turn);
}
#else
typedef double real;
typedef uint64_t word;
#define PAIRS 8

INLINE void box_muller(word first, word second, real *even, real *odd)
{
    const uint64_t one = 0x3ff0000000000000;
    union { double f; int64_t i; uint64_t u; } v, e, r, turn;
    v.u = (first >> 12) | one;
    v.f = 2.0 - v.f;                        /* (0, 1] */
    e.i = (v.i - 0x3fe6a09e667f3bcd) >> 52; /* v = m 2^e with m in [sqrt(1/2), sqrt(2)) */
    v.i -= (int64_t)((uint64_t)e.i << 52);
    double t = v.f - 1.0, p = -0.10471777033847566;
    p = p * t + 0.19608840135572406;
    p = p * t - 0.2009441023777866;
    p = p * t + 0.19891992373439323;
    p = p * t - 0.22012076540759096;
    p = p * t + 0.24990870649984291;
    p = p * t - 0.28581623478857981;
    p = p * t + 0.33334049144018161;
    p = p * t - 0.39999776279947264;
    p = p * t + 0.49999985456898611;
    p = p * t - 0.66666668498413186;
    p = p * t + 1.0000000007190341;
    p = p * t - 1.9999999999749303;
    r.f = sqrt(p * t - 1.38629436111989062 * (double)e.i); /* sqrt(-2 log v) */
    r.u |= second << 63;
    turn.u = (second >> 12) | one;
    turn.f = turn.f * 2.0 - 3.0; /* [-1, 1) quarter turns */
    double q = turn.f * turn.f, s = -3.4317889917983867e-6, c = 4.4921617120835063e-7;
    s = s * q + 0.00016025459023725093;
    s = s * q - 0.004681657707277992;
    s = s * q + 0.079692603685575841;
    s = s * q - 0.645964095574125;
    s = s * q + 1.570796326768066;
    c = c * q - 2.5172184011050644e-5;
    c = c * q + 0.00091923998667074689;
    c = c * q - 0.020863473675962031;
    c = c * q + 0.25366950672108985;
    c = c * q - 1.2337005500624624;
    c = c * q + 0.99999999999924796;
    *even = r.f * c;
    *odd = r.f * (s * turn.f);
}
#endif

/* BLOCK normal numbers. The state stays in registers, so that shifts and sums share the ports. */
INLINE void draw(lanes *restrict state, real *restrict z)
{
    lanes g = *state;
    for (int i = 0; i < HALF; i += PAIRS) {
        union { uint64_t drawn[LANES]; word part[2 * PAIRS]; } w;
        for (int j = 0; j < LANES; j++) {
            uint64_t sum = g.a[j] + g.d[j], t = g.b[j] << 17;
            w.drawn[j] = ((sum << 23) | (sum >> 41)) + g.a[j];
            g.c[j] ^= g.a[j];
            g.d[j] ^= g.b[j];
            g.b[j] ^= g.c[j];
            g.a[j] ^= g.d[j];
            g.c[j] ^= t;
            g.d[j] = (g.d[j] << 45) | (g.d[j] >> 19);
        }
        for (int j = 0; j < PAIRS; j++)
            box_muller(w.part[j], w.part[j + PAIRS], &z[i + j], &z[i + j + HALF]);
    }
    *state = g;
}

/* x <- w.x x + w.xi xi + w.z z, then x <- x - w.cut sign(x); z <- new noise; sums of both. */
INLINE sums pass(double *restrict x, const double *restrict xi, real *restrict z, int64_t n,
                 update w, int cuts, lanes *state)
{
    double along = 0, ahead = 0, overlap = 0, norm = 0;
    real fresh[BLOCK] __attribute__((aligned(64)));
    for (int64_t start = 0; start < n; start += BLOCK) {
        int size = n - start < BLOCK ? (int)(n - start) : BLOCK;
        double *restrict u = x + start;
        const double *restrict f = xi + start;
        real *restrict old = z + start;
        draw(state, fresh);
        for (int i = 0; i < size; i++) {
            double moved = w.x * u[i] + w.xi * f[i] + w.z * old[i], noise = fresh[i];
            if (cuts)
                moved -= copysign(w.cut, moved);
            u[i] = moved;
            old[i] = fresh[i];
            along += f[i] * noise;
            ahead += moved * noise;
            overlap += moved * f[i];
            norm += moved * moved;
        }
    }
    return (sums){along, ahead, overlap, norm};
}

/* The last update, which no pass followed, and |x|^2 = n. */
INLINE void finish(double *restrict x, const double *restrict xi, const real *restrict z, int64_t n,
                   update w)
{
    double norm = 0;
    for (int64_t i = 0; i < n; i++) {
        double moved = w.x * x[i] + w.xi * xi[i] + w.z * z[i];
        x[i] = moved - copysign(w.cut, moved);
        norm += x[i] * x[i];
    }
    double scale = sqrt(n / norm);
    for (int64_t i = 0; i < n; i++)
        x[i] *= scale;
}

/* x <- x - (tau/sqrt n) u^3 y - (tau/n) beta x, |x|^2 = n, with u = y.x/sqrt n and
 * y = xi c/sqrt n + z - xi (xi.z)/n. z is room for n numbers. */
void ica(double *x, const double *xi, real *z, int64_t n, const double *source, int64_t steps,
         double tau, double beta, lanes *state)
{
    double root = sqrt((double)n);
    update w = {1, 0, 0, 0};
    for (int64_t i = 0; i < n; i++)
        z[i] = 0;
    for (int64_t k = 0; k < steps; k++) {
        sums s = pass(x, xi, z, n, w, 0, state);
        double scale = sqrt(n / s.norm), shift = source[k] / root - s.along / n;
        double u = scale * (s.ahead + shift * s.overlap) / root;
        double gain = tau / root * u * u * u;
        w = (update){scale * (1 - tau * beta / n), -gain * shift, -gain, 0};
    }
    finish(x, xi, z, n, w);
}

/* x~ = x + (tau/n) y y'x, x <- x~ - (beta/n) sign(x~), |x|^2 = n, with y = sqrt(omega/n) c xi + z. */
void oist(double *x, const double *xi, real *z, int64_t n, const double *source, int64_t steps,
          double tau, double omega, double beta, lanes *state)
{
    double root = sqrt(omega / n);
    update w = {1, 0, 0, 0};
    for (int64_t i = 0; i < n; i++)
        z[i] = 0;
    for (int64_t k = 0; k < steps; k++) {
        sums s = pass(x, xi, z, n, w, 1, state);
        double scale = sqrt(n / s.norm), shift = root * source[k];
        double gain = tau / n * scale * (s.ahead + shift * s.overlap);
        w = (update){scale, gain * shift, gain, beta / n};
    }
    finish(x, xi, z, n, w);
}

/* The noise alone: blocks * BLOCK numbers. */
void noise(real *z, int64_t blocks, lanes *state)
{
    for (int64_t k = 0; k < blocks; k++)
        draw(state, z + k * BLOCK);
}
