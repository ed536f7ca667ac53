/* mjcf_cube.c - the Cube model: a UR5e arm, a Robotiq 2F-85 gripper with its full linkage,
 * one cube on a floor.
 *
 * Every arm and gripper body carries its inertia explicitly, so shapes matter only for rendering
 * and contacts.  Shapes of class "look" are rendered and touch nothing; those of class "hull" touch
 * and are not rendered.  A cylinder or capsule along y is turned by 90 degrees about x. */
#include <stdio.h>

#include "env/mujoco_models.h"

#define ALONG_Y " quat='1 -1 0 0'"

static const char OPTIONS[] =
    "<mujoco model='cube'>"
    "<compiler angle='radian' autolimits='true'/>"
    "<option timestep='0.002' integrator='implicit' cone='elliptic' impratio='10'"
    " gravity='0 0 -9.81'/>"
    "<statistic center='0.3 0 0.15' extent='0.7' meansize='0.04'/>"
    "<visual><map znear='0.1' zfar='10'/>"
    "<headlight ambient='.1 .1 .1' diffuse='.6 .6 .6' specular='0 0 0'/></visual>"
    "<asset>"
    "<texture type='skybox' builtin='gradient' rgb1='.15 .18 .25' rgb2='0 0 0' width='64'"
    " height='384'/>"
    "<texture name='floor' type='2d' builtin='checker' mark='cross' rgb1='.08 .11 .16'"
    " rgb2='.15 .18 .25' markrgb='.8 .8 .8' width='512' height='512'/>"
    "<material name='floor' texture='floor' texrepeat='1 1' texuniform='true'/>"
    "<material name='J' rgba='.278 .278 .278 1' specular='.5' shininess='.25'/>"
    "<material name='L' rgba='.82 .82 .82 1' specular='.5' shininess='.25'/>"
    "<material name='K' rgba='.033 .033 .033 1' specular='.5' shininess='.25'/>"
    "<material name='B' rgba='.6 .72 .94 1' specular='.5' shininess='.25'/>"
    "<material name='P' rgba='.61 .28 .82 1' specular='.5' shininess='.5'/>"
    "<material name='G' rgba='.4627 .4627 .4627 1' specular='.5' shininess='.5'/>"
    "</asset>"
    "<default><general biastype='affine' gaintype='fixed'/>"
    "<default class='look'><geom type='cylinder' group='2' contype='0' conaffinity='0' mass='0'/>"
    "</default>"
    "<default class='hull'><geom type='capsule' group='3' mass='0'/></default>"
    "<default class='arm'><joint armature='0.1' range='-6.28319 6.28319'/></default>"
    "<default class='finger'><joint axis='1 0 0' armature='0.001'"
    " solimplimit='0.95 0.99 0.001' solreflimit='0.005 1'/></default>"
    "<default class='pad'><geom type='box' group='3' mass='0' size='.011 .004 .009375'"
    " solimp='0.95 0.99 0.001' solref='0.004 1' priority='1'/></default>"
    "<default class='wall'><geom type='box' group='3' contype='0' conaffinity='2'/></default>"
    "</default>"
    "<worldbody>"
    "<light name='global' directional='true' pos='0 0 1.5' dir='0 0 -1' diffuse='.7 .7 .7'"
    " specular='.3 .3 .3' castshadow='true'/>"
    "<light name='spot' pos='.25 0 .5' dir='0 0 -1' diffuse='.3 .3 .3' specular='.3 .3 .3'"
    " castshadow='false' cutoff='100' exponent='1'/>"
    "<camera name='picture' pos='1.053 -.014 .639' xyaxes='0 1 0 -.628 0 .778' fovy='45'/>"
    "<geom name='floor' type='plane' size='1 1 .01' material='floor'/>"
    "<geom class='wall' size='.003 .38 .2' pos='.22 0 .1'/>"
    "<geom class='wall' size='.003 .38 .2' pos='.63 0 .1'/>"
    "<geom class='wall' size='.205 .003 .2' pos='.425 -.38 .1'/>"
    "<geom class='wall' size='.205 .003 .2' pos='.425 .38 .1'/>";

static const char ARM_LOWER[] =
    "<body name='base' quat='1 0 0 1'>"
    "<inertial mass='4' pos='0 0 0' diaginertia='.0044333 .0044333 .0072'/>"
    "<geom class='look' material='J' size='.075 .0425' pos='0 0 .0425'/>"
    "<geom class='look' material='K' size='.058 .007' pos='0 0 .092'/>"
    "<body name='shoulder' pos='0 0 .163'>"
    "<inertial mass='3.7' pos='0 0 0' diaginertia='.0102675 .0102675 .00666'/>"
    "<joint class='arm' name='pan' axis='0 0 1'/>"
    "<geom class='look' material='J' size='.058 .0605' pos='0 0 -.0035'/>"
    "<geom class='look' material='J' size='.058 .030' pos='0 .030 0'" ALONG_Y "/>"
    "<geom class='look' material='K' size='.058 .007' pos='0 .067 0'" ALONG_Y "/>"
    "<geom class='look' material='B' size='.060 .006' pos='0 0 .063'/>"
    "<geom class='look' material='B' size='.058 .0045' pos='0 -.0615 0'" ALONG_Y "/>"
    "<geom class='hull' size='.06 .06' pos='0 0 -.04'/>"
    "<body name='upper' pos='0 .138 0' quat='1 0 1 0'>"
    "<inertial mass='8.393' pos='0 0 .2125' diaginertia='.133886 .133886 .0151074'/>"
    "<joint class='arm' name='lift' axis='0 1 0'/>"
    "<geom class='look' material='L' size='.054 .139' pos='0 0 .212'/>"
    "<geom class='look' material='K' size='.057 .0065' pos='0 0 .0665'/>"
    "<geom class='look' material='K' size='.057 .007' pos='0 0 .358'/>"
    "<geom class='look' material='J' size='.058 .060' pos='0 -.002 0'" ALONG_Y "/>"
    "<geom class='look' material='J' size='.058 .060' pos='0 -.002 .425'" ALONG_Y "/>"
    "<geom class='look' material='K' size='.058 .007' pos='0 -.071 .425'" ALONG_Y "/>"
    "<geom class='look' material='B' size='.058 .0045' pos='0 .0625 0'" ALONG_Y "/>"
    "<geom class='look' material='B' size='.058 .0045' pos='0 .0625 .425'" ALONG_Y "/>"
    "<geom class='hull' size='.06 .06' pos='0 -.04 0'" ALONG_Y "/>"
    "<geom class='hull' size='.05 .2' pos='0 0 .2'/>"
    "<body name='forearm' pos='0 -.131 .425'>"
    "<inertial mass='2.275' pos='0 0 .196' diaginertia='.0311796 .0311796 .004095'/>"
    "<joint class='arm' name='elbow' axis='0 1 0' range='-3.1415 3.1415'/>"
    "<geom class='look' material='L' size='.044 .131' pos='0 0 .208'/>"
    "<geom class='look' material='K' size='.047 .0065' pos='0 0 .070'/>"
    "<geom class='look' material='K' size='.040 .0065' pos='0 0 .3455'/>"
    "<geom class='look' material='J' size='.058 .0505' pos='0 .0025 0'" ALONG_Y "/>"
    "<geom class='look' material='J' size='.0375 .044' pos='0 0 .392'" ALONG_Y "/>"
    "<geom class='look' material='K' size='.0375 .0045' pos='0 .0485 .392'" ALONG_Y "/>"
    "<geom class='look' material='B' size='.039 .006' pos='0 -.050 .392'" ALONG_Y "/>"
    "<geom class='hull' size='.055 .06' pos='0 .08 0'" ALONG_Y "/>"
    "<geom class='hull' size='.038 .19' pos='0 0 .2'/>";

static const char ARM_UPPER[] =
    "<body name='wrist1' pos='0 0 .392' quat='1 0 1 0'>"
    "<inertial mass='1.219' pos='0 .127 0' diaginertia='.0025599 .0025599 .0021942'/>"
    "<joint class='arm' name='wrist1' axis='0 1 0'/>"
    "<geom class='look' material='J' size='.0375 .037' pos='0 .0905 0'" ALONG_Y "/>"
    "<geom class='look' material='J' size='.0375 .043' pos='0 .127 .003'/>"
    "<geom class='look' material='K' size='.0375 .004' pos='0 .127 .050'/>"
    "<geom class='look' material='B' size='.039 .008' pos='0 .127 -.048'/>"
    "<geom class='hull' size='.04 .07' pos='0 .05 0'" ALONG_Y "/>"
    "<body name='wrist2' pos='0 .127 0'>"
    "<inertial mass='1.219' pos='0 0 .1' diaginertia='.0025599 .0025599 .0021942'/>"
    "<joint class='arm' name='wrist2' axis='0 0 1'/>"
    "<geom class='look' material='J' size='.0375 .0225' pos='0 0 .0765'/>"
    "<geom class='look' material='J' size='.0375 .043' pos='0 .0025 .0995'" ALONG_Y "/>"
    "<geom class='look' material='K' size='.0375 .004' pos='0 .0495 .0995'" ALONG_Y "/>"
    "<geom class='look' material='B' size='.039 .008' pos='0 -.0485 .0995'" ALONG_Y "/>"
    "<geom class='hull' size='.04 .06' pos='0 0 .04'/>"
    "<geom class='hull' size='.04 .04' pos='0 .02 .1'" ALONG_Y "/>"
    "<body name='wrist3' pos='0 0 .1'>"
    "<inertial mass='.1889' pos='0 .0771683 0' diaginertia='9.90863e-5 .000132134 9.90863e-5'/>"
    "<joint class='arm' name='wrist3' axis='0 1 0'/>"
    "<geom class='look' material='L' size='.0375 .023' pos='0 .076 0'" ALONG_Y "/>"
    "<geom class='hull' type='cylinder' size='.04 .02' pos='0 .08 0'" ALONG_Y "/>"
    "<site name='flange' pos='0 .1 0' quat='1 -1 0 0' group='4'/>"
    /* mount: 0.007 beyond the flange, in the flange's frame */
    "<body name='mount' pos='0 .107 0' quat='1 -1 0 0'>"
    "<inertial mass='.09584' pos='0 0 0' diaginertia='3.42e-5 3.33e-5 6.54e-5'/>"
    "<geom class='look' material='P' size='.0375 .007'/>"
    "<geom class='hull' type='cylinder' size='.0375 .007'/>"
    "<body name='hand' pos='0 0 .0038' quat='1 0 0 -1'>"
    "<inertial mass='.777441' pos='0 0 .03547' diaginertia='2.603e-4 2.254e-4 1.527e-4'/>"
    "<site name='pinch' pos='0 0 .145' group='4'/>"
    "<geom class='look' material='P' size='.0375 .024' pos='0 0 .020'/>"
    "<geom class='look' material='P' type='box' size='.030 .040 .0225' pos='0 0 .0665'/>"
    "<geom class='hull' type='cylinder' size='.0375 .024' pos='0 0 .020'/>"
    "<geom class='hull' type='box' size='.030 .040 .0225' pos='0 0 .0665'/>";

/* One finger: driver and coupler, spring link and follower, a loop that a connect
 * constraint closes.  @ stands for its name, ~ and ^ for the sign of y and the rotation with
 * which its two links are mounted. */
static const char FINGER[] =
    "<body name='@_driver' pos='0 ~0.0306011 .054904' quat='^'>"
    "<inertial mass='.00899563' pos='0 .0177547 .0010731' quat='.681301 .732003 0 0'"
    " diaginertia='1.7235e-6 1.6091e-6 .3220e-6'/>"
    "<joint class='finger' name='@_driver' range='0 .8' armature='.005' damping='.1'/>"
    "<geom class='look' material='G' type='box' size='.012 .0215 .0075' pos='0 .0157 -.0020'"
    " quat='.9979205960533374 -.06445528661445661 0 0'/>"
    "<body name='@_coupler' pos='0 .0315 -.0041'>"
    "<inertial mass='.0140974' pos='0 .0030121 .0232175'"
    " quat='.705636 -.04559 .04559 .705636' diaginertia='4.1621e-6 3.5222e-6 .8881e-6'/>"
    "<joint class='finger' name='@_coupler' range='-1.57 0'/>"
    "<geom class='look' material='P' type='box' size='.0135 .005 .028' pos='0 .00305 .0238'"
    " quat='.9979845523689529 -.06345733395708274 0 0'/>"
    "</body></body>"
    "<body name='@_spring' pos='0 ~0.0132 .0609' quat='^'>"
    "<inertial mass='.0221642' pos='0 .0181624 .0212658'"
    " quat='.663403 -.244737 .244737 .663403' diaginertia='8.9685e-6 6.7173e-6 2.6393e-6'/>"
    "<joint axis='1 0 0' name='@_spring' range='-.296706 .8' armature='.001'"
    " damping='.00125' stiffness='.05' springref='2.62'/>"
    "<geom class='look' material='P' type='capsule' size='.006 .02874456470360962'"
    " pos='.0135 .0185 .022' quat='.9395110659022305 -.34251854993161274 0 0'/>"
    "<geom class='look' material='P' type='capsule' size='.006 .02874456470360962'"
    " pos='-.0135 .0185 .022' quat='.9395110659022305 -.34251854993161274 0 0'/>"
    "<body name='@_follower' pos='0 .055 .0375'>"
    "<inertial mass='.0125222' pos='0 -.011046 .0124786' quat='1 .1664 0 0'"
    " diaginertia='2.6742e-6 2.4559e-6 .6020e-6'/>"
    "<joint class='finger' name='@_follower' pos='0 -.018 .0065' range='-.872664 .872664'/>"
    "<geom class='look' material='P' type='capsule' size='.006 .009568829604502317'"
    " pos='0 -.009 .00325' quat='.818426680826559 .5746109711023812 0 0'/>"
    "<geom class='look' material='P' type='box' size='.0075 .0035 .0215' pos='0 -.0155 .023'/>"
    "<geom class='hull' type='box' size='.0075 .0035 .0215' pos='0 -.0155 .023'/>"
    "<body name='@_pad' pos='0 -.0189 .01352'>"
    "<inertial mass='.0035' pos='0 -.0025 .0185' quat='1 0 0 1'"
    " diaginertia='4.740e-7 3.646e-7 1.240e-7'/>"
    "<geom class='look' material='P' type='box' size='.011 .0025 .01875' pos='0 -.0025 .01875'/>"
    "<geom class='pad' friction='.7' pos='0 -.0026 .028125'/>"
    "<geom class='pad' friction='.6' pos='0 -.0026 .009375'/>"
    "<body name='@_skin'>"
    "<inertial mass='.0012927' pos='0 -.0058 .0185' quat='1 0 0 1'"
    " diaginertia='1.992e-7 1.484e-7 .514e-7'/>"
    "<geom class='look' material='P' type='box' size='.011 .0008 .01875' pos='0 -.0058 .01875'/>"
    "</body></body></body></body>";

/* closes hand, mount, the three wrists, forearm, upper arm, shoulder and base */
static const char CUBE[] =
    "</body></body></body></body></body></body></body></body></body>"
    "<body name='cube' pos='.425 0 .02'><freejoint name='cube'/>"
    "<geom name='cube' type='box' size='.02 .02 .02' density='1240' contype='3' conaffinity='1'"
    " solref='.004 1' rgba='.96 .26 .33 1'/>"
    "</body></worldbody>";

static const char REST[] =
    "<contact>"
    "<exclude body1='hand' body2='right_driver'/><exclude body1='hand' body2='left_driver'/>"
    "<exclude body1='hand' body2='right_spring'/><exclude body1='hand' body2='left_spring'/>"
    "<exclude body1='hand' body2='right_follower'/><exclude body1='hand' body2='left_follower'/>"
    "</contact>"
    "<tendon><fixed name='fingers'>"
    "<joint joint='right_driver' coef='.5'/><joint joint='left_driver' coef='.5'/>"
    "</fixed></tendon>"
    "<equality>"
    "<connect body1='right_follower' body2='right_coupler' anchor='0 0 0'"
    " solimp='.95 .99 .001' solref='.005 1'/>"
    "<connect body1='left_follower' body2='left_coupler' anchor='0 0 0'"
    " solimp='.95 .99 .001' solref='.005 1'/>"
    "<joint joint1='right_driver' joint2='left_driver' polycoef='0 1 0 0 0'"
    " solimp='.95 .99 .001' solref='.005 1'/>"
    "</equality>"
    /* the velocity gains are upstream's effective ones: 400 on large joints, 100 on the wrist */
    "<actuator>"
    "<general joint='pan' gainprm='4500' biasprm='0 -4500 -400' forcerange='-150 150'"
    " ctrlrange='-6.2831 6.2831'/>"
    "<general joint='lift' gainprm='4500' biasprm='0 -4500 -400' forcerange='-150 150'"
    " ctrlrange='-6.2831 6.2831'/>"
    "<general joint='elbow' gainprm='4500' biasprm='0 -4500 -400' forcerange='-150 150'"
    " ctrlrange='-3.1415 3.1415'/>"
    "<general joint='wrist1' gainprm='2000' biasprm='0 -2000 -100' forcerange='-28 28'"
    " ctrlrange='-6.2831 6.2831'/>"
    "<general joint='wrist2' gainprm='2000' biasprm='0 -2000 -100' forcerange='-28 28'"
    " ctrlrange='-6.2831 6.2831'/>"
    "<general joint='wrist3' gainprm='500' biasprm='0 -500 -100' forcerange='-28 28'"
    " ctrlrange='-6.2831 6.2831'/>"
    "<general tendon='fingers' gainprm='.3137255' biasprm='0 -100 -10' forcerange='-5 5'"
    " ctrlrange='0 255'/>"
    "</actuator></mujoco>";

static void mount_finger(char *out, size_t size, const char *name, const char *sign,
                         const char *rotation) {
    size_t used = 0;
    out[0] = 0;
    for (const char *c = FINGER; *c && used + 1 < size; c++) {
        const char one[2] = {*c, 0};
        const char *piece = *c == '@' ? name : *c == '~' ? sign : *c == '^' ? rotation : one;
        used += (size_t)snprintf(out + used, size - used, "%s", piece);
    }
}

size_t cgs_mjcf_cube(char *out, size_t size) {
    char right[2 * sizeof FINGER], left[2 * sizeof FINGER];
    mount_finger(right, sizeof right, "right", "", "1 0 0 0");
    mount_finger(left, sizeof left, "left", "-", "0 0 0 1");
    return (size_t)snprintf(out, size, "%s%s%s%s%s%s%s", OPTIONS, ARM_LOWER, ARM_UPPER, right, left,
                            CUBE, REST);
}
