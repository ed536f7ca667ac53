/* linear_system.h - the linear system of the theory, z' = A z + B a, and derived quantities.
 *
 * A system is given (a JSON file), drawn, or measured on a model.  cgs_facts holds what most
 * statements need, computed once: the defects of the transition, the planning Hessian with
 * its eigenvectors, and the constants of the bounds. */
#ifndef CGS_ANALYSIS_LINEAR_SYSTEM_H
#define CGS_ANALYSIS_LINEAR_SYSTEM_H

#include "analysis/dense.h"
#include "core/rng.h"

typedef struct cgs_system {
    int d, da, H; /* latent, action, horizon */
    double c;     /* target scale of B^T B */
    cgs_mat A;    /* (d, d) */
    cgs_mat B;    /* (d, da) */
    cgs_mat cov;  /* (d + da, d + da) second moment of [z; a] */
    cgs_mat z0;   /* (d, 1) start */
    cgs_mat goal; /* (d, 1) */
    double sigma; /* standard deviation of the candidates */
    double tau;   /* MPPI's temperature */
    double alpha; /* CEM's elite fraction */
} cgs_system;

/* Reads {"A","B","cov" (also "Sigma_x"),"H","c"} and optionally "z0","goal","sigma","tau", "alpha"
 * (ones, 1, 1 and 0.25 without).  The system's memory is *w, which the caller destroys and which is
 * large enough for cgs_facts and the checks. */
cgs_status cgs_system_read(cgs_system *s, cgs_work *w, const char *path);

/* The index-th system of a seed.  One in eight is far from the ideal geometry, one in sixteen
 * has fewer latents than actions, the others are near it by a random amount.  At most
 * CGS_SYSTEM_SIDE rows or columns in any matrix of the theory. */
#define CGS_SYSTEM_SIDE 16
void cgs_system_draw(cgs_system *s, cgs_work *w, uint64_t seed, uint64_t index);

/* a random (n, n) with orthonormal columns, and independent standard normals */
cgs_mat cgs_random_rotation(cgs_work *w, cgs_rng *r, int n);
cgs_mat cgs_random_normal(cgs_work *w, cgs_rng *r, int rows, int cols);

typedef struct cgs_facts {
    const cgs_system *s;
    int d, da, H, n, r; /* n = H da plans, r = da leading directions */
    double c;
    /* transition */
    cgs_mat D;           /* A - I */
    cgs_mat Q;           /* [D B]^T [D B] - diag(0, c I) */
    double drift;        /* |D| */
    double mixed;        /* |D^T B| */
    double control;      /* |B^T B - c I| */
    double rho, rho_bar; /* smallest and largest eigenvalue of cov */
    double loss;         /* L_G = tr(Q cov Q cov) */
    double defect;       /* R(A, B) */
    double eps_loss;     /* epsilon of the loss; infinite for a singular covariance */
    double eps;          /* the smallest epsilon with which all three bounds hold */
    double eps_ts;       /* ... without the mixed one */
    /* horizon */
    double xi;         /* xi_H(eps); NaN for eps >= 1 */
    cgs_mat gamma;     /* (d, n) plan to terminal latent */
    cgs_mat G, M, P;   /* (n, n) Hessian, G / (cH), ideal projector */
    cgs_mat lambda, V; /* eigenvalues (n, 1) of G from the largest down, eigenvectors */
    int controllable;  /* rank of gamma */
    double gap;        /* |M - P| */
    double s_mppi;     /* sigma^2 c H / tau */
    cgs_mat best;      /* (n, 1) the shortest best plan */
} cgs_facts;

void cgs_facts_derive(cgs_facts *f, const cgs_system *s, cgs_work *w);

/* xi_H(eps), and its three parts; the bound without the mixed defect. */
double cgs_xi(int H, double eps);
double cgs_xi_ts(int H, double eps);
double cgs_growth_excess(int H, double eps);    /* s_H */
double cgs_growth_remainder(int H, double eps); /* r_H */

/* C(plan) = 1/2 |A^H z0 + gamma plan - goal|^2 by rolling the system out. */
double cgs_system_cost(const cgs_system *s, cgs_work *w, cgs_mat plan);

#endif /* CGS_ANALYSIS_LINEAR_SYSTEM_H */
