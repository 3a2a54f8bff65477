"""A zipped database with a table `s` of strings that are no UTF-8, which no program that checks them makes."""

DATABASE = (
    'P)h>@KL7#%4gfa}d0i|^xzpbO0000W000pH003fPWOa0AFEB7LFfcSOb7f}<1O)(H004jh04bFQYa9(JP}XoaeK~6{_7fifPt`W7(5V{ya?5N@'
    'HsL`D1&9^7AV4|4JEi8&+@5npS41kOcadwQ|DVT17}@T{9N**5l5W=%0UpjC$FYb5@Zz>5xx{Ok=_tZ=0LE~^xY*!Y+0!(hm7(-6<eeLA%@|43'
    'YQ3D%weNBx*dY={w)u*Z)!~X|CKph@m8QT|NLXwC7ii+Mect;k!ZZ_0XipAq$I6b)XQ8WHY>~6wSUEZsLp(_?q|juNlbAR$74t_jMmRY4?Im?#'
    'zyH=|X^v1!0|Y++0ssyGHx7ASvK*@|m;e9(H~|0v761SMVqs);bY?G2K~70VMN?EQFfcGMFfj=P1pr+D0Du4hDU}9m8@bty$MP5y@d9soJ|wwE'
    '^<#A_j#tlV_w{G^d;+?Syd%;~Gx&B+;LclxWN@~b7xiZkh7N_-Qm2ps;EeY?RYH?!WOfXJBmhcFe5?EeH6-t#`1r(ZG<-=Kh3T4$FnMOB!g{3W'
    '&&03DpV{{?tKJ&%TdkIBbbuK%(010+o9~L4|Nnd=fB;ZS0|Y++0ssyGHx7AS09AzvG5`PoApigX4gdfEVqs);bY?F@RZ>z#PE-j51pr+D0Du4h'
    'CXhw|7>n$Ac5I%cr5__*pE-lkR%(v9T`dHg?y%y!$hpD)`#rz_P)h>@KL7#%4gfa}d0klJBm5Zv000I6000XB003fPWOa0AFHBEEO9=!809^n8'
    'fB*m)4T95d2a4E`|Ns4LPykR%0|Y++0ssyGHx7AS^H)&>tN;K2KmY*%5dZ)HVqs);bY?FwFfcGMH7<8yYzYJf09^n8fB*m~l?H1Yt(GvC9V}33'
    'ncO7PVVgBJb11ovt;iV3>32CJO||(JrykZOY;o2r0eh{9(<4<O(IOXrCknJ6WoZ^II%W}5OpjY1TTO+qP-g}P|M(^v*<0)&Xqt^XBcW#)3GYVr'
    'PTMRX6zILUlp`zh5pVWkBcG&4@+0U6m0UG+&){{bzAik38Vu-j&X{;P=O)jO!@w{3t7_rH|Na_)08mQ-0zU&k00ICG05=YKT`Wtv)87C9001BW'
    '01*HH00000000000HlEc0001DVPti5W-l->FfcGQE^}pPP)h*<KLbAi0ssyGHx7ASvK*@|m;e9(H~|0v761SM0000000000q=60r003fPWOa0A'
    'FHJ#CNk&CeR4p(tFfcGNP)h*<KLbAi0ssyGHx7AS09AzvG5`PoApigX4gdfE0000000000q=DK2003fPWOa0AFGE#QQbkTwP)h*<KLbAi0ssyG'
    'Hx7ASSmPu782|tP1^@s63jhEB0000000000q=7gB003fPWOa0AFHBEEOHfMz0zU&k00ICG05=YKUGrB_1gro606+i%01*HH00000000000HlF>'
    '0ssJFVPti5W-l->FfcGRE_Y#UP)h{{000001poyAHvs?uRRaJ3000'
)
