/* gradient_monitor.c - see gradient_monitor.h. */
#include "train/gradient_monitor.h"

#include <math.h>

enum { FAST = 50, SLOW = 1000, BEGIN = 200 /* first updates, whose norms are large and falling */ };

bool cgs_gradient_monitor_add(cgs_gradient_monitor *g, double norm) {
    if (g->told || !(norm > 0)) return false;
    double x = log(norm);
    if (g->count++ == 0) g->fast = g->slow = x;
    g->fast += (x - g->fast) / FAST;
    /* until the slow mean has enough updates, it follows the fast one */
    g->slow += (x - g->slow) / (g->count < BEGIN ? FAST : SLOW);
    if (g->count <= BEGIN || g->slow < g->usual) g->usual = g->slow;
    g->told = g->count > BEGIN && g->fast - g->usual > log(10);
    return g->told;
}
