/* mujoco_models.c - Reacher and the two mazes; mjcf_cube.c has the arm. */
#include "env/mujoco_models.h"

#include <stdarg.h>
#include <stdio.h>

size_t cgs_mjcf_reacher(char *out, size_t size) {
    int n = snprintf(
        out, size, "%s",
        "<mujoco model='reacher'>"
        "<compiler angle='radian' autolimits='true'/>"
        "<option timestep='0.02'><flag contact='disable'/></option>"
        "<size njmax='60' nconmax='20'/>"
        "<statistic extent='0.66' center='0 0 0'/>"
        "<visual><headlight ambient='.4 .4 .4' diffuse='.8 .8 .8' specular='.1 .1 .1'/>"
        "<map znear='.01' zfar='50'/></visual>"
        "<asset>"
        "<texture name='ground' type='2d' builtin='checker' rgb1='.1 .2 .3' rgb2='.2 .3 .4'"
        " width='300' height='300'/>"
        "<material name='ground' texture='ground' texrepeat='1 1' texuniform='false'"
        " reflectance='.2'/>"
        "<material name='wall' rgba='.3 .5 .7 1'/>"
        "<material name='arm' rgba='.7 .5 .3 1'/>"
        "<material name='tip' rgba='.7 .4 .2 1'/>"
        "</asset>"
        "<default><joint damping='0.01'/><motor gear='.05' ctrlrange='-1 1'/></default>"
        "<worldbody>"
        "<light name='spot' pos='0 0 1' dir='0 0 -1' diffuse='.7 .7 .7' specular='.3 .3 .3'"
        " cutoff='45' exponent='10'/>"
        "<camera name='picture' pos='0 0 .75' quat='1 0 0 0' fovy='45'/>"
        "<geom type='plane' size='.3 .3 10' material='ground'/>"
        "<geom type='plane' pos='-.3 0 .02' quat='1 0 1 0' size='.02 .3 .02' material='wall'/>"
        "<geom type='plane' pos='0 -.3 .02' quat='1 -1 0 0' size='.3 .02 .02' material='wall'/>"
        "<geom type='plane' pos='.3 0 .02' quat='1 0 -1 0' size='.02 .3 .02' material='wall'/>"
        "<geom type='plane' pos='0 .3 .02' quat='1 1 0 0' size='.3 .02 .02' material='wall'/>"
        "<geom type='cylinder' pos='0 0 .01' size='.011 .01' material='wall'/>"
        "<body name='arm' pos='0 0 .01'>"
        "<joint name='shoulder' axis='0 0 1'/>"
        "<geom type='capsule' pos='.06 0 0' quat='1 0 1 0' size='.01 .06' material='arm'/>"
        "<body name='hand' pos='.12 0 0'>"
        "<joint name='wrist' axis='0 0 1' range='-2.792526803190927 2.792526803190927'/>"
        "<geom type='capsule' pos='.05 0 0' quat='1 0 1 0' size='.01 .05' material='arm'/>"
        "<body name='finger' pos='.12 0 0'>"
        "<geom type='sphere' size='.01' material='tip'/>"
        "</body></body></body>"
        "</worldbody>"
        "<actuator><motor joint='shoulder'/><motor joint='wrist'/></actuator>"
        "</mujoco>");
    return (size_t)n;
}

/* ---- mazes ---------------------------------------------------------------------- */

const char *const cgs_maze_umaze[] = {"#####", "#GOO#", "###O#", "#OOO#", "#####", NULL};
const char *const cgs_maze_medium[] = {"########", "#OO##OO#", "#OO#OOO#", "##OOO###", "#OO#OOO#",
                                       "#O#OO#O#", "#OOO#OG#", "########", NULL};

/* appends like snprintf, and keeps counting when out is full */
__attribute__((format(printf, 4, 5))) static void add(char *out, size_t size, size_t *used,
                                                      const char *format, ...) {
    va_list args;
    va_start(args, format);
    size_t room = *used < size ? size - *used : 0;
    *used += (size_t)vsnprintf(room ? out + *used : NULL, room, format, args);
    va_end(args);
}

/* The camera is the free camera of upstream, written down: straight above the look-at point at the
 * distance of the model's extent.  The simulated ball is invisible, a larger marker around it is
 * rendered.  Upstream ball and ground touch, which does not affect motion in the plane; here they
 * do not collide. */
static size_t maze(char *out, size_t size, const char *const *rows, double look, double distance) {
    size_t used = 0;
    add(out, size, &used,
        "<mujoco model='pointmaze'>"
        "<compiler angle='radian' inertiafromgeom='true' autolimits='true'/>"
        "<option timestep='0.01' gravity='0 0 0' iterations='20' integrator='Euler'/>"
        "<size njmax='60' nconmax='20'/>"
        "<statistic extent='%.5f' center='%g %g 0'/>"
        "<visual><headlight ambient='.4 .4 .4' diffuse='.8 .8 .8' specular='.1 .1 .1'/></visual>"
        "<asset>"
        "<texture name='ground' type='2d' builtin='checker' rgb1='.2 .3 .4' rgb2='.1 .2 .3'"
        " width='100' height='100'/>"
        "<material name='ground' texture='ground' texrepeat='20 20'/>"
        "</asset>"
        "<default><geom condim='1' margin='0.002' density='1000' friction='.5 .1 .1'/></default>"
        "<worldbody>"
        "<camera name='picture' pos='%g %g %.5f' quat='1 0 0 0' fovy='45'/>"
        "<geom type='plane' pos='0 0 -.1' size='40 40 .25' material='ground' contype='0'"
        " conaffinity='0'/>",
        distance, look, look, look, look, distance);
    for (int i = 0; rows[i]; i++)
        for (int j = 0; rows[i][j]; j++)
            if (rows[i][j] == '#')
                add(out, size, &used,
                    "<geom type='box' size='.5 .5 .2' pos='%d %d 0' rgba='.7 .5 .3 1'/>", i + 1,
                    j + 1);
    add(out, size, &used, "%s",
        "<body name='ball' pos='1.2 1.2 0'>"
        "<joint name='x' type='slide' axis='1 0 0' damping='1'/>"
        "<joint name='y' type='slide' axis='0 1 0' damping='1'/>"
        "<geom name='ball' type='sphere' size='.1' rgba='0 0 0 0'/>"
        "<site name='marker' type='sphere' size='.2' rgba='.3 .6 .3 1'/>"
        "</body></worldbody>"
        "<actuator>"
        "<motor joint='x' gear='100' ctrlrange='-1 1'/>"
        "<motor joint='y' gear='100' ctrlrange='-1 1'/>"
        "</actuator></mujoco>");
    return used;
}

size_t cgs_mjcf_umaze(char *out, size_t size) {
    return maze(out, size, cgs_maze_umaze, 3, 9.73485);
}

size_t cgs_mjcf_medium(char *out, size_t size) {
    return maze(out, size, cgs_maze_medium, 4, 12.73485);
}
