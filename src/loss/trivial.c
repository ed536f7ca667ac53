/* trivial.c - see trivial.h. */
#include "loss/trivial.h"

#include <stddef.h>

cgs_trivial cgs_trivial_errors(const float *z, int windows, int frames, int width) {
    int rows = windows * frames;
    double moved = 0, variance = 0;
    for (int k = 0; k < width; k++) {
        /* around the first value, so that a large common part costs no digits */
        double first = (double)z[k], sum = 0, squares = 0, before = 0;
        for (int i = 0; i < rows; i++) {
            double x = (double)z[(size_t)i * (size_t)width + (size_t)k] - first;
            sum += x;
            squares += x * x;
            if (i % frames) moved += (x - before) * (x - before);
            before = x;
        }
        variance += squares / rows - sum / rows * (sum / rows);
    }
    return (cgs_trivial){.copy = moved / ((double)windows * (frames - 1) * width),
                         .mean = variance / width};
}
