/* A step of online tensorial ICA in plain C: the stand-in for what the machine can do. Eight seeds
 * side by side, no threads, no intrinsics: vectors are those of gcc.
 *
 * One pass a step: the update with the sample of the step before, a new sample, and v.Z of the next
 * update; the norm is carried along, |v'|^2 = |v|^2 + 2 g v.Z + g^2 |Z|^2, and put right every 1024
 * steps. Random words: SFC64 (Doty-Humphrey 2014) in every lane; one bit is a sign, one word a
 * uniform number. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 8
#ifdef __AVX512F__
#define WIDE 8 /* numbers in a register */
#elif defined(__AVX__)
#define WIDE 4
#else
#define WIDE 2
#endif
#define PARTS (LANES / WIDE)
#define RENEW 1024
#define INLINE static inline __attribute__((always_inline))

typedef double reals __attribute__((vector_size(8 * WIDE)));
typedef uint64_t words __attribute__((vector_size(8 * WIDE)));
typedef struct { words a[PARTS], b[PARTS], c[PARTS], n[PARTS]; } generator;
typedef struct { reals x[PARTS]; } row;
typedef struct { words w[PARTS]; } bits;

#define EACH for (int l = 0; l < PARTS; l++)

INLINE words next(generator *g, int l)
{
    words w = g->a[l] + g->b[l] + g->n[l];
    g->n[l] += 1;
    g->a[l] = g->b[l] ^ (g->b[l] >> 11);
    g->b[l] = g->c[l] + (g->c[l] << 3);
    g->c[l] = ((g->c[l] << 24) | (g->c[l] >> 40)) + w;
    return w;
}

INLINE reals flip(reals x, words w) { return (reals)((words)x ^ (w & 0x8000000000000000)); }

INLINE reals uniform(words w)
{
    const double width = 3.4641016151377544;
    return (reals)((w >> 12) | 0x3ff0000000000000) * width - 1.5 * width;
}

INLINE void renew(row *v, int64_t d, row *norm)
{
    row scale;
    EACH norm->x[l] = (reals){0};
    for (int64_t k = 0; k < d; k++)
        EACH norm->x[l] += v[k].x[l] * v[k].x[l];
    EACH for (int i = 0; i < WIDE; i++)
        scale.x[l][i] = 1 / sqrt(norm->x[l][i]);
    for (int64_t k = 0; k < d; k++)
        EACH v[k].x[l] *= scale.x[l];
    EACH norm->x[l] = (reals){0} + 1;
}

/* v and the rooms begin with a cache line. v has shape (d, LANES) and columns of length one, as at
 * the end; state: a, b, c and the counter of every lane; room: zeros for d/64 rows of words. */
void signs(double *vector, uint64_t *state, uint64_t *room, int64_t d, int64_t steps, double eta)
{
    generator g;
    memcpy(&g, state, sizeof g);
    row *v = (row *)vector, push, norm;
    bits *kept = (bits *)room;
    EACH push.x[l] = (reals){0}, norm.x[l] = (reals){0} + 1;
    for (int64_t t = 0; t < steps; t++) {
        row even, odd;
        EACH even.x[l] = odd.x[l] = (reals){0};
        for (int64_t low = 0; low < d; low += 64) {
            int64_t high = low + 64 < d ? low + 64 : d, k = low;
            bits old = kept[low / 64], new;
            EACH new.w[l] = next(&g, l);
            kept[low / 64] = new;
            for (; k + 1 < high; k += 2) {
                EACH {
                    reals moved = v[k].x[l] + flip(push.x[l], old.w[l]);
                    v[k].x[l] = moved;
                    even.x[l] += flip(moved, new.w[l]);
                    moved = v[k + 1].x[l] + flip(push.x[l], old.w[l] << 1);
                    v[k + 1].x[l] = moved;
                    odd.x[l] += flip(moved, new.w[l] << 1);
                    old.w[l] <<= 2;
                    new.w[l] <<= 2;
                }
            }
            if (k < high)
                EACH {
                    v[k].x[l] += flip(push.x[l], old.w[l]);
                    even.x[l] += flip(v[k].x[l], new.w[l]);
                }
        }
        EACH {
            reals p = even.x[l] + odd.x[l];
            push.x[l] = -eta / norm.x[l] * (p * p * p);
            norm.x[l] += push.x[l] * (p + p + push.x[l] * (double)d);
        }
        if ((t + 1) % RENEW == 0 || t + 1 == steps) {
            for (int64_t k = 0; k < d; k++)
                EACH v[k].x[l] += flip(push.x[l], kept[k / 64].w[l] << (k % 64));
            EACH push.x[l] = (reals){0};
            renew(v, d, &norm);
        }
    }
    memcpy(state, &g, sizeof g);
}

/* The same with uniform numbers; room for d rows. */
void uniforms(double *vector, uint64_t *state, double *room, int64_t d, int64_t steps, double eta)
{
    generator g;
    memcpy(&g, state, sizeof g);
    row *v = (row *)vector, *z = (row *)room, push, norm;
    EACH push.x[l] = (reals){0}, norm.x[l] = (reals){0} + 1;
    for (int64_t t = 0; t < steps; t++) {
        row along, square;
        EACH along.x[l] = square.x[l] = (reals){0};
        for (int64_t k = 0; k < d; k++)
            EACH {
                reals new = uniform(next(&g, l)), moved = v[k].x[l] + push.x[l] * z[k].x[l];
                v[k].x[l] = moved;
                z[k].x[l] = new;
                along.x[l] += moved * new;
                square.x[l] += new * new;
            }
        EACH {
            reals p = along.x[l];
            push.x[l] = -eta / norm.x[l] * (p * p * p);
            norm.x[l] += push.x[l] * (p + p + push.x[l] * square.x[l]);
        }
        if ((t + 1) % RENEW == 0 || t + 1 == steps) {
            for (int64_t k = 0; k < d; k++)
                EACH v[k].x[l] += push.x[l] * z[k].x[l];
            EACH push.x[l] = (reals){0};
            renew(v, d, &norm);
        }
    }
    memcpy(state, &g, sizeof g);
}
