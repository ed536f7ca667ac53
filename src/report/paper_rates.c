/* paper_rates.c - see paper_rates.h.  Numbers only; NAN where the paper gives none. */
#include "report/paper_rates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/method.h"

enum { ENVS = 4, ROLES = 3, PLANNERS = 4, BUDGETS = 9 };

static const char *const envs[ENVS] = {"pusht", "cube", "tworooms", "reacher"};
static const char *const planners[PLANNERS] = {"mppi", "pg-mppi", "cem", "pg-cem"};

/* success in percent, {mean, sample sd}, at K = 1, 2, 4, ..., 256 with I = 30 */
/* clang-format off */
static const float sweep[ENVS][ROLES][PLANNERS][BUDGETS][2] = {
    { /* pusht */
        { /* LeWM */
            {{0, 0}, {30.7, 6.1}, {42.7, 9}, {56.7, 1.1}, {58.7, 10.1}, {61.3, 1.1}, {59.3, 10.1}, {64, 5.3}, {60.7, 4.2}}, /* MPPI */
            {{84.7, 6.4}, {82, 4}, {82.7, 6.1}, {77.3, 5}, {76, 6}, {78.7, 6.4}, {72.7, 8.3}, {72, 6}, {62, 3.5}}, /* PG-MPPI */
            {{0, 0}, {35.3, 3.1}, {37.3, 6.4}, {56, 5.3}, {74, 7.2}, {83.3, 4.2}, {83.3, 5}, {89.3, 6.1}, {87.3, 4.2}}, /* CEM */
            {{85.3, 6.1}, {84, 3.5}, {80.7, 5.8}, {91.3, 1.1}, {89.3, 1.1}, {93.3, 1.1}, {94, 4}, {92, 5.3}, {92, 2}}, /* PG-CEM */
        },
        { /* LeWM+TS */
            {{0, 0}, {38, 5.3}, {40.7, 6.4}, {50, 5.3}, {51.3, 1.1}, {56.7, 5}, {65.3, 3.1}, {64.7, 8.3}, {66.7, 7}}, /* MPPI */
            {{84, 5.3}, {84, 6}, {82.7, 5.8}, {78, 2}, {76.7, 3.1}, {78.7, 3.1}, {72.7, 7.6}, {69.3, 9}, {70.7, 3.1}}, /* PG-MPPI */
            {{0, 0}, {28, 2}, {34.7, 10.1}, {55.3, 6.4}, {73.3, 6.1}, {85.3, 3.1}, {89.3, 5}, {86.7, 5}, {89.3, 3.1}}, /* CEM */
            {{84, 5.3}, {89.3, 1.1}, {86, 3.5}, {89.3, 7.6}, {94, 4}, {94.7, 3.1}, {92, 2}, {90, 5.3}, {91.3, 4.2}}, /* PG-CEM */
        },
        { /* LeWM+CGS */
            {{0, 0}, {40, 5.3}, {52, 2}, {60.7, 8.1}, {68.7, 4.2}, {67.3, 6.1}, {72, 2}, {77.3, 6.4}, {75.3, 7.6}}, /* MPPI */
            {{88, 7.2}, {89.3, 4.6}, {88, 5.3}, {87.3, 6.1}, {86.7, 1.1}, {84.7, 5.8}, {85.3, 1.1}, {80, 2}, {84, 9.2}}, /* PG-MPPI */
            {{0, 0}, {35.3, 1.1}, {42.7, 1.1}, {68.7, 5}, {83.3, 4.2}, {86, 4}, {88.7, 4.6}, {92, 3.5}, {90.7, 5.8}}, /* CEM */
            {{88, 7.2}, {90.7, 6.1}, {86.7, 5}, {96, 4}, {94, 2}, {94, 5.3}, {96, 2}, {96, 0}, {96, 4}}, /* PG-CEM */
        },
    },
    { /* cube */
        { /* LeWM */
            {{44.7, 7}, {46, 5.3}, {44.7, 11}, {46.7, 6.4}, {51.3, 4.2}, {51.3, 5}, {56.7, 5}, {59.3, 4.6}, {64, 9.2}}, /* MPPI */
            {{100, 0}, {75.3, 8.3}, {70, 5.3}, {60.7, 4.2}, {61.3, 6.1}, {76.7, 2.3}, {82.7, 6.4}, {89.3, 4.2}, {90, 2}}, /* PG-MPPI */
            {{44.7, 7}, {50, 3.5}, {45.3, 10.1}, {55.3, 9}, {57.3, 7}, {62.7, 10.1}, {64, 6}, {63.3, 2.3}, {64, 11.1}}, /* CEM */
            {{100, 0}, {94, 0}, {88, 5.3}, {91.3, 3.1}, {94.7, 1.1}, {89.3, 4.2}, {88, 4}, {90, 2}, {89.3, 1.1}}, /* PG-CEM */
        },
        { /* LeWM+TS */
            {{44.7, 7}, {48, 5.3}, {46.7, 3.1}, {48, 2}, {46, 8.7}, {56.7, 9}, {68, 5.3}, {75.3, 5}, {75.3, 6.1}}, /* MPPI */
            {{98, 2}, {65.3, 5}, {65.3, 10.3}, {62.7, 14.5}, {74.7, 5}, {84.7, 7.6}, {87.3, 2.3}, {92.7, 3.1}, {93.3, 1.1}}, /* PG-MPPI */
            {{44.7, 7}, {48.7, 4.2}, {47.3, 1.1}, {54, 5.3}, {61.3, 4.6}, {64.7, 7.6}, {71.3, 6.4}, {73.3, 10.3}, {73.3, 9.9}}, /* CEM */
            {{98, 2}, {92.7, 4.6}, {86.7, 5}, {88.7, 4.2}, {89.3, 3.1}, {88.7, 3.1}, {88.7, 1.1}, {90, 2}, {90.7, 3.1}}, /* PG-CEM */
        },
        { /* LeWM+CGS */
            {{44.7, 7}, {44, 4}, {46.7, 9.4}, {50, 7.2}, {54, 8}, {64, 6.9}, {69.3, 9.9}, {79.3, 4.6}, {82.7, 6.1}}, /* MPPI */
            {{100, 0}, {60, 4}, {62.7, 7.6}, {64.7, 9.9}, {72.7, 3.1}, {86.7, 3.1}, {92.7, 2.3}, {96.7, 3.1}, {98.7, 1.1}}, /* PG-MPPI */
            {{44.7, 7}, {48.7, 4.2}, {48.7, 2.3}, {55.3, 4.2}, {64, 10.4}, {68.7, 5.8}, {75.3, 11.6}, {76.7, 9.5}, {82, 6}}, /* CEM */
            {{100, 0}, {96, 2}, {95.3, 3.1}, {92, 4}, {90.7, 5}, {94.7, 2.3}, {93.3, 1.1}, {96, 4}, {95.3, 4.2}}, /* PG-CEM */
        },
    },
    { /* tworooms */
        { /* LeWM */
            {{13.3, 1.1}, {40.7, 7}, {53.3, 7}, {60, 10.6}, {70.7, 11.7}, {82, 10}, {88.7, 4.2}, {92, 3.5}, {94.7, 1.1}}, /* MPPI */
            {{100, 0}, {77.3, 9.9}, {68.7, 4.2}, {79.3, 1.1}, {87.3, 4.6}, {91.3, 6.4}, {98.7, 1.1}, {98, 2}, {100, 0}}, /* PG-MPPI */
            {{13.3, 1.1}, {55.3, 9}, {57.3, 6.4}, {56.7, 3.1}, {68, 5.3}, {79.3, 4.2}, {79.3, 9}, {76.7, 10.1}, {78, 5.3}}, /* CEM */
            {{100, 0}, {98, 3.5}, {97.3, 2.3}, {99.3, 1.1}, {96, 4}, {96.7, 2.3}, {96, 3.5}, {93.3, 3.1}, {94.7, 2.3}}, /* PG-CEM */
        },
        { /* LeWM+TS */
            {{13.3, 1.1}, {56, 3.5}, {64, 9.2}, {74.7, 1.1}, {81.3, 1.1}, {88, 5.3}, {95.3, 4.2}, {97.3, 3.1}, {96, 2}}, /* MPPI */
            {{100, 0}, {78.7, 4.2}, {69.3, 6.4}, {78, 4}, {84.7, 7}, {92, 2}, {95.3, 5}, {98, 2}, {98, 2}}, /* PG-MPPI */
            {{13.3, 1.1}, {68.7, 8.1}, {68.7, 7.6}, {78, 2}, {88.7, 5}, {95.3, 3.1}, {96, 2}, {97.3, 1.2}, {96.7, 2.3}}, /* CEM */
            {{100, 0}, {98.7, 1.1}, {100, 0}, {100, 0}, {100, 0}, {100, 0}, {100, 0}, {100, 0}, {100, 0}}, /* PG-CEM */
        },
        { /* LeWM+CGS */
            {{13.3, 1.1}, {54, 2}, {62, 11.1}, {75.3, 9.4}, {82, 2}, {92.7, 6.1}, {96, 2}, {97.3, 1.1}, {98, 2}}, /* MPPI */
            {{100, 0}, {86.7, 6.1}, {78.7, 7.6}, {80, 4}, {90.7, 2.3}, {94, 3.5}, {98, 3.5}, {100, 0}, {100, 0}}, /* PG-MPPI */
            {{13.3, 1.1}, {64, 6}, {71.3, 8.1}, {76, 5.3}, {88, 2}, {93.3, 2.3}, {94, 2}, {95.3, 1.1}, {96, 2}}, /* CEM */
            {{100, 0}, {98, 2}, {98.7, 1.1}, {100, 0}, {100, 0}, {100, 0}, {100, 0}, {100, 0}, {100, 0}}, /* PG-CEM */
        },
    },
    { /* reacher */
        { /* LeWM */
            {{2, 2}, {46, 7.2}, {40.7, 8.3}, {44.7, 3.1}, {36.7, 9}, {36.7, 6.1}, {49.3, 11.4}, {65.3, 4.2}, {73.3, 4.6}}, /* MPPI */
            {{78.7, 2.3}, {67.3, 5}, {49.3, 1.1}, {46, 7.2}, {42.7, 5}, {46, 5.3}, {46.7, 10.1}, {62.7, 11}, {72, 7.2}}, /* PG-MPPI */
            {{2, 2}, {44, 10}, {41.3, 4.2}, {65.3, 5.8}, {72, 5.3}, {74.7, 9.2}, {83.3, 7}, {83.3, 8.3}, {85.3, 3.1}}, /* CEM */
            {{78.7, 2.3}, {82, 2}, {73.3, 6.1}, {79.3, 4.2}, {85.3, 3.1}, {80, 3.5}, {81.3, 9.4}, {86.7, 6.1}, {86.7, 10.1}}, /* PG-CEM */
        },
        { /* LeWM+TS */
            {{2, 2}, {47.3, 8.1}, {40, 10.6}, {36.7, 9.9}, {44.7, 4.2}, {40, 9.2}, {53.3, 6.1}, {64, 2}, {68.7, 6.4}}, /* MPPI */
            {{66.7, 11}, {58, 6}, {46.7, 9.9}, {41.3, 7.6}, {38.7, 9}, {44.7, 3.1}, {52.7, 5}, {66.7, 2.3}, {67.3, 7.6}}, /* PG-MPPI */
            {{2, 2}, {42.7, 5}, {37.3, 1.1}, {62.7, 3.1}, {70.7, 3.1}, {80, 8.7}, {77.3, 5}, {81.3, 8.1}, {81.3, 7}}, /* CEM */
            {{66.7, 11}, {74.7, 9.9}, {66.7, 5}, {78.7, 13}, {80, 7.2}, {79.3, 3.1}, {82, 8.7}, {78, 2}, {84.7, 5}}, /* PG-CEM */
        },
        { /* LeWM+CGS */
            {{2, 2}, {46, 2}, {39.3, 3.1}, {38, 13.1}, {41.3, 4.2}, {42.7, 12.2}, {56, 10}, {66.7, 2.3}, {70.7, 2.3}}, /* MPPI */
            {{58.7, 6.1}, {64.7, 1.1}, {47.3, 7}, {46.7, 7}, {46, 2}, {46.7, 4.2}, {53.3, 12.9}, {69.3, 3.1}, {67.3, 7}}, /* PG-MPPI */
            {{2, 2}, {39.3, 1.1}, {38.7, 9.4}, {66.7, 3.1}, {71.3, 15}, {81.3, 4.6}, {82, 2}, {80.7, 3.1}, {86.7, 4.2}}, /* CEM */
            {{58.7, 6.1}, {66.7, 7}, {60, 5.3}, {74, 6}, {80.7, 6.4}, {80.7, 2.3}, {79.3, 10.1}, {81.3, 3.1}, {88, 6.9}}, /* PG-CEM */
        },
    },
};

/* area under success over log2 K, all nine: {MPPI, PG-MPPI, CEM, PG-CEM} */
static const float budget[ENVS][ROLES][PLANNERS] = {
    {{50.46, 76.83, 62.79, 89.17}, {50, 77.42, 62.17, 90.38}, {59.46, 85.92, 67.75, 93.17}},
    {{51.29, 76.38, 56.54, 91.25}, {56.08, 78.54, 59.96, 89.88}, {58.88, 79.42, 62.58, 94.46}},
    {{67.67, 87.58, 64.79, 96.75}, {76.42, 86.88, 80.96, 99.83}, {76.88, 91, 79.58, 99.58}},
    {{44.63, 54.5, 63.46, 81.33}, {45.17, 51.96, 61.71, 76.88}, {45.79, 54.62, 63.04, 74.5}},
};

/* gradient descent, 100 steps */
static const float descent[ENVS][ROLES][2] = {
    {{85.3, 5}, {82.7, 5.8}, {89.3, 6.4}}, /* pusht */
    {{59.3, 8.1}, {65.3, 4.6}, {71.3, 4.6}}, /* cube */
    {{41.3, 7}, {65.3, 9.9}, {70.7, 3.1}}, /* tworooms */
    {{76.7, 4.2}, {81.3, 5}, {82, 5.3}}, /* reacher */
};

/* area under success over I at K = 128: {MPPI, CEM} */
static const float refinement[ENVS][ROLES][2] = {
    {{64.85, 73.93}, {67.06, 72.23}, {75.71, 80.25}},
    {{64.36, 64}, {70.7, 71.98}, {73.72, 77.4}},
    {{86.06, 76.87}, {92.89, 94.85}, {94.49, 93.34}},
    {{67.23, 75.16}, {68.39, 73.92}, {71.44, 77.6}},
};

/* area under success over tau, MPPI at K = 128 */
static const float temperature[ENVS][ROLES] = {
    {50.76, 49.82, 60.48},
    {52.15, 61.45, 63.64},
    {77.64, 83.42, 81.58},
    {51, 51.64, 50.73},
};

/* mean cosine of consecutive latent steps at the end of training */
static const float straightness[ENVS][ROLES] = {
    {0.548, 0.613, NAN},
    {0.262, 0.666, NAN},
    {-0.341, -0.168, NAN},
    {-0.049, -0.003, NAN},
};

/* Reacher by history and reference: {mean, sd, area over K} of MPPI and CEM, {mean, sd} of GD */
static const char *const histories[3] = {"native", "dataset", "online"};
static const char *const reacher_methods[3] = {"lewm", "lewm-cgs", "lewm-cgs-transition"};
static const float by_history[3][3][8] = {
    {{65.3, 4.2, 44.63, 83.3, 8.3, 63.46, 76.7, 4.2},
     {66.7, 2.3, 45.79, 80.7, 3.1, 63.04, 82, 5.3},
     {66, 7.2, 45.79, 79.3, 7, 62.88, 85.3, 7}},
    {{68.7, 2.3, 49.38, 96, 5.3, 71.75, 84, 3.5},
     {72.7, 3.1, 49.75, 98.7, 1.1, 73.83, 90.7, 4.2},
     {80, 2, 51.96, 97.3, 3.1, 73.46, 94, 3.5}},
    {{69.3, 4.2, 48.42, 92.7, 4.2, 69.79, 81.3, 2.3},
     {68.7, 2.3, 49.21, 92, 2, 69.37, 89.3, 4.2},
     {75.3, 8.3, 48.46, 91.3, 1.1, 69.79, 92.7, 5}},
};

/* Cube by reference: {area over K, area over I} of MPPI and CEM */
static const char *const cube_methods[3] = {"lewm-cgs", "lewm-cgs-xyz-all", "lewm-cgs-full"};
static const float by_reference[3][4] = {
    {58.88, 73.72, 62.58, 77.4}, {57, 72.67, 61.29, 75.09}, {57.29, 69.68, 62.92, 75.82}};

static const char *const dino_envs[ENVS] = {"wall", "pointmaze-umaze", "pointmaze-medium", "pusht"};
/* DINO-WM: {MPPI, CEM} at K = 32, 64, 128, then gradient descent */
static const float dino[2][ENVS][ROLES][7][2] = {
    { /* cls */
        { /* wall */
            {{84, 5.3}, {86.7, 6.4}, {89.3, 5}, {74.7, 3.1}, {76, 5.3}, {74.7, 6.1}, {55.3, 2.3}},
            {{88.7, 5.8}, {83.3, 7.6}, {84, 4}, {79.3, 6.1}, {78.7, 4.2}, {77.3, 8.3}, {68, 4}},
            {{86, 6.9}, {84.7, 5.8}, {81.3, 6.1}, {83.3, 8.1}, {81.3, 7}, {83.3, 3.1}, {81.3, 7.6}},
        },
        { /* pointmaze-umaze */
            {{92, 2}, {93.3, 2.3}, {96.7, 4.2}, {88, 3.5}, {92.7, 3.1}, {90.7, 5}, {62, 5.3}},
            {{91.3, 4.2}, {94.7, 1.2}, {95.3, 3.1}, {86, 2}, {89.3, 5}, {90, 2}, {66.7, 3.1}},
            {{96.7, 3.1}, {96, 2}, {97.3, 3.1}, {93.3, 3.1}, {96, 4}, {96, 3.5}, {81.3, 4.2}},
        },
        { /* pointmaze-medium */
            {{90.7, 5}, {90.7, 2.3}, {92.7, 3.1}, {85.3, 4.2}, {86, 2}, {84.7, 7}, {56, 4}},
            {{88.7, 4.2}, {88.7, 6.1}, {94, 2}, {87.3, 1.2}, {84.7, 3.1}, {89.3, 4.6}, {65.3, 8.1}},
            {{94.7, 1.2}, {95.3, 2.3}, {95.3, 3.1}, {92, 2}, {92.7, 3.1}, {93.3, 2.3}, {79.3, 6.1}},
        },
        { /* pusht */
            {{31.3, 6.1}, {35.3, 4.6}, {46.7, 3.1}, {47.3, 6.4}, {56, 8.7}, {63.3, 5}, {46, 2}},
            {{29.3, 4.2}, {29.3, 10.3}, {29.3, 5.8}, {41.3, 5}, {38, 2}, {47.3, 4.2}, {34, 14}},
            {{40.7, 4.2}, {46.7, 2.3}, {56.7, 4.6}, {55.3, 4.6}, {65.3, 6.1}, {66.7, 6.4}, {57.3, 8.1}},
        },
    },
    { /* patch */
        { /* wall */
            {{90, 2}, {89.3, 2.3}, {86, 5.3}, {90.7, 2.3}, {81.3, 8.1}, {84.7, 6.4}, {83.3, 3.1}},
            {{89.3, 1.2}, {91.3, 2.3}, {90.7, 3.1}, {91.3, 1.2}, {87.3, 2.3}, {86, 2}, {86.7, 2.3}},
            {{88, 7.2}, {88.7, 1.2}, {92.7, 3.1}, {88, 4}, {88.7, 5}, {85.3, 6.4}, {88.7, 4.2}},
        },
        { /* pointmaze-umaze */
            {{99.3, 1.2}, {96.7, 1.2}, {98.7, 1.2}, {98, 2}, {98.7, 1.2}, {99.3, 1.2}, {94, 4}},
            {{97.3, 3.1}, {96.7, 1.2}, {98, 2}, {94.7, 3.1}, {97.3, 3.1}, {95.3, 1.2}, {96, 2}},
            {{98.7, 1.2}, {99.3, 1.2}, {100, 0}, {96, 2}, {96, 2}, {98, 0}, {96, 3.5}},
        },
        { /* pointmaze-medium */
            {{94, 4}, {97.3, 3.1}, {97.3, 2.3}, {94.7, 1.2}, {92.7, 2.3}, {98.7, 1.2}, {88.7, 4.2}},
            {{94, 2}, {93.3, 3.1}, {95.3, 2.3}, {88.7, 3.1}, {90.7, 1.2}, {92, 3.5}, {87.3, 4.6}},
            {{94.7, 1.2}, {95.3, 1.2}, {96, 2}, {94, 2}, {86, 2}, {92, 3.5}, {88, 2}},
        },
        { /* pusht */
            {{68, 4}, {62, 4}, {75.3, 5}, {75.3, 2.3}, {81.3, 4.2}, {83.3, 1.2}, {78, 5.3}},
            {{75.3, 4.2}, {80, 8.7}, {78.7, 4.6}, {76.7, 5}, {84.7, 4.6}, {87.3, 4.2}, {84, 5.3}},
            {{64.7, 4.2}, {72.7, 6.4}, {80.7, 2.3}, {80, 3.5}, {81.3, 2.3}, {84.7, 5}, {76.7, 1.2}},
        },
    },
};
/* clang-format on */

static int find(const char *const *names, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name)) return i;
    return -1;
}

/* log2 of a power of two, or -1 */
static int budget_index(int K) {
    for (int i = 0; i < BUDGETS; i++)
        if (K == 1 << i) return i;
    return -1;
}

static bool dino_rate(const char *method, const char *env, int role, const char *planner, int K,
                      cgs_published *out) {
    bool patch = !strncmp(method, "dinowm-patch", 12);
    if (!patch && strncmp(method, "dinowm-cls", 10) != 0) return false;
    int e = find(dino_envs, ENVS, env), k = budget_index(K) - 5, at = -1;
    if (!strcmp(planner, "gd")) at = 6;
    if (k >= 0 && k < 3 && !strcmp(planner, "mppi")) at = k;
    if (k >= 0 && k < 3 && !strcmp(planner, "cem")) at = 3 + k;
    if (e < 0 || at < 0) return false;
    const float *v = dino[patch][e][role][at];
    *out = (cgs_published){(double)v[0], (double)v[1]};
    return isfinite(v[0]);
}

bool cgs_published_rate(const char *method, const char *env, const char *planner, int K,
                        cgs_published *out) {
    int role = cgs_published_role(method), e = find(envs, ENVS, env);
    if (role < 0) return false;
    if (!strncmp(method, "dinowm", 6)) return dino_rate(method, env, role, planner, K, out);
    if (e < 0) return false;
    int p = find(planners, PLANNERS, planner), k = budget_index(K);
    const float *v = NULL;
    if (!strcmp(planner, "gd")) v = descent[e][role];
    if (p >= 0 && k >= 0) v = sweep[e][role][p][k];
    if (v) *out = (cgs_published){(double)v[0], (double)v[1]};
    return v != NULL;
}

int cgs_published_role(const char *method) {
    const cgs_method *m = cgs_method_find(method);
    return m && (int)m->role < ROLES ? (int)m->role : -1;
}

static bool lewm_in(const char *method, const char *env, int *role, int *e) {
    *role = cgs_published_role(method);
    *e = find(envs, ENVS, env);
    return *role >= 0 && *e >= 0 && !strncmp(method, "lewm", 4);
}

bool cgs_published_budget(const char *method, const char *env, const char *planner, double *nauc) {
    int role, e, p = find(planners, PLANNERS, planner);
    if (p < 0 || !lewm_in(method, env, &role, &e)) return false;
    *nauc = (double)budget[e][role][p];
    return true;
}

bool cgs_published_refinement(const char *method, const char *env, const char *planner,
                              double *nauc) {
    int role, e, p = !strcmp(planner, "mppi") ? 0 : !strcmp(planner, "cem") ? 1 : -1;
    if (p < 0 || !lewm_in(method, env, &role, &e)) return false;
    *nauc = (double)refinement[e][role][p];
    return true;
}

bool cgs_published_temperature(const char *method, const char *env, double *nauc) {
    int role, e;
    if (!lewm_in(method, env, &role, &e)) return false;
    *nauc = (double)temperature[e][role];
    return true;
}

bool cgs_published_cosine(const char *method, const char *env, double *cosine) {
    int role, e;
    if (!lewm_in(method, env, &role, &e)) return false;
    *cosine = (double)straightness[e][role];
    return isfinite(*cosine);
}

bool cgs_published_history(const char *method, const char *history, const char *planner,
                           cgs_published *rate, double *nauc) {
    static const char *const order[3] = {"mppi", "cem", "gd"};
    int h = find(histories, 3, history), m = find(reacher_methods, 3, method);
    int p = find(order, 3, planner);
    if (h < 0 || m < 0 || p < 0) return false;
    const float *v = by_history[h][m] + 3 * p;
    *rate = (cgs_published){(double)v[0], (double)v[1]};
    *nauc = p < 2 ? (double)v[2] : NAN;
    return true;
}

bool cgs_published_cube_reference(const char *method, const char *planner, double *over_K,
                                  double *over_I) {
    int m = find(cube_methods, 3, method);
    int p = !strcmp(planner, "mppi") ? 0 : !strcmp(planner, "cem") ? 1 : -1;
    if (m < 0 || p < 0) return false;
    *over_K = (double)by_reference[m][2 * p];
    *over_I = (double)by_reference[m][2 * p + 1];
    return true;
}

bool cgs_published_seconds(const char *method, const char *planner, double *seconds) {
    static const char *const who[] = {"lewm", "dinowm-patch"}, *const how[] = {"cem", "mppi", "gd"};
    static const double taken[2][3] = {{5.163, 1.850, 0.161}, {86.852, 86.959, 6.516}};
    int m = find(who, 2, method), p = find(how, 3, planner);
    if (m < 0 || p < 0) return false;
    *seconds = taken[m][p];
    return true;
}
