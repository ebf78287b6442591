/* Algorithm 1 of the paper on the points of unlimited chains, scalar and in double precision: what the benchmarks
   measure against. Points are x, y, z in turn, root first. */

#include <math.h>
#include <string.h>

static double apart(const double *a, const double *b)
{
    const double x = b[0] - a[0], y = b[1] - a[1], z = b[2] - a[2];
    return sqrt(x * x + y * y + z * z);
}

/* Put `point` at `length` from `anchor` on the line from there through `through`. */
static void put_on_line(double *point, const double *anchor, const double *through, double length)
{
    const double share = length / apart(anchor, through);
    for (int i = 0; i < 3; i++) {
        point[i] = anchor[i] + (through[i] - anchor[i]) * share;
    }
}

static int reach(int bones, const double *lengths, double *points, const double *target, double tolerance, int most)
{
    const double root[3] = {points[0], points[1], points[2]};
    double *tip = points + 3 * bones, total = 0.0;
    for (int i = 0; i < bones; i++) {
        total += lengths[i];
    }
    if (apart(root, target) > total) {
        for (int i = 0; i < bones; i++) {
            put_on_line(points + 3 * (i + 1), points + 3 * i, target, lengths[i]);
        }
        return 1;
    }
    for (int sweep = 0; sweep < most; sweep++) {
        if (apart(tip, target) <= tolerance) {
            return sweep;
        }
        memcpy(tip, target, sizeof root);
        for (int i = bones - 1; i >= 0; i--) {
            put_on_line(points + 3 * i, points + 3 * (i + 1), points + 3 * i, lengths[i]);
        }
        memcpy(points, root, sizeof root);
        for (int i = 0; i < bones; i++) {
            put_on_line(points + 3 * (i + 1), points + 3 * i, points + 3 * (i + 1), lengths[i]);
        }
    }
    return most;
}

/* Every frame from the same start; `points` receives frames x (bones + 1) x 3, `sweeps` what each frame took. */
void fabrik(int frames, int bones, const double *lengths, const double *start, const double *targets,
            double tolerance, int most, double *points, int *sweeps)
{
    const int size = 3 * (bones + 1);
    for (int frame = 0; frame < frames; frame++) {
        double *own = points + (size_t)frame * size;
        memcpy(own, start, size * sizeof *start);
        sweeps[frame] = reach(bones, lengths, own, targets + 3 * (size_t)frame, tolerance, most);
    }
}
