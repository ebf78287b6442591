"""Marker sets as they are published and spelled in real files."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A marker set: its labels with `@` instead of a side, the bones of some, and how labels show the side."""

    text: str
    bones: str
    sides: tuple[str, str] = ("L", "R")

    @property
    def labels(self) -> list[str]:
        """All labels, those with a side for both."""
        words = self.text.split()
        sided = [word.replace("@", side) for side in self.sides for word in words if "@" in word]
        return [*sided, *(word for word in words if "@" not in word)]


SETS = {
    "Plug-in Gait, full body": Published(
        """
        @FHD @BHD @SHO @UPA @ELB @FRM @WRA @WRB @FIN @ASI @PSI @THI @KNE @TIB @ANK @HEE @TOE C7 T10 CLAV STRN
        RBAK
        """,
        bones="LTHI:thigh.L RWRA:forearm.R RFIN:hand.R",
    ),
    "Plug-in Gait, a performer's prefix with an underscore": Published(
        """
        Anna_@ASI Anna_@PSI Anna_@THI Anna_@KNE Anna_@TIB Anna_@ANK Anna_@HEE Anna_@TOE Anna_C7 Anna_CLAV
        """,
        bones="Anna_LTHI:thigh.L Anna_C7:chest",
    ),
    "Plug-in Gait with numbered and suffixed clusters": Published(
        """
        @ASI @PSI @THI1 @THI2 @THI3 @KNE @KNE_med @TIB1 @TIB2 @TIB3 @ANK @ANK_med @HEE @TOE Foot_@1 Foot_@2
        """,
        bones="RTHI2:thigh.R LTIB3:shin.L RKNE_med:thigh.R Foot_R1:foot.R LANK_med:shin.L",
    ),
    "CMU 41": Published(
        """
        @FHD @BHD @SHO @UPA @ELB @FRM @WRA @WRB @FIN @FWT @BWT @THI @KNE @SHN @ANK @HEE @TOE @MT5 C7 T10 CLAV
        STRN RBAC
        """,
        bones="LSHN:shin.L RFWT:hips",
    ),
    "SSM of AMASS": Published(
        """
        @FHD @BHD @SHO @FSH @BSH @UPA @ELB @ELBIN @FRM @IWR @OWR @IHAN @OHAN @THMB @FWT @BWT @THI @KNE @KNI @SHN
        @ANK @HEE @TOE @MT1 @MT5 ARIEL C7 T10 CLAV STRN MFWT MBWT
        """,
        bones="LIHAN:hand.L ROWR:forearm.R RKNI:thigh.R MFWT:hips ARIEL:head",
    ),
    "Helen Hayes of gait2354": Published(
        """
        @.ASIS @.Thigh.Upper @.Thigh.Front @.Thigh.Rear @.Knee.Lat @.Knee.Med @.Shank.Upper @.Shank.Front
        @.Shank.Rear @.Ankle.Lat @.Ankle.Med @.Heel @.Midfoot.Sup @.Midfoot.Lat @.Toe.Tip @.Toe.Lat @.Toe.Med
        @.Acromium @.Bicep @.Elbow @.Wrist.Med @.Wrist.Lat @.Temple V.Sacral Sternum Top.Head
        """,
        bones="R.Thigh.Upper:thigh.R V.Sacral:hips",
    ),
    "Rajagopal": Published(
        """
        @ACR @ASH @PSH @LEL @MEL @UA1 @UA2 @UA3 @FAsuperior @FAradius @FAulna @ASI @PSI @HJC @TH1 @TH2 @TH3 @LFC
        @MFC @KJC @TB1 @TB2 @TB3 @LMAL @MMAL @AJC @CAL @TOE @MT5 C7 CLAV
        """,
        bones="RTB2:shin.R LUA3:upper_arm.L",
    ),
    "OpenCap's anatomical set": Published(
        """
        @.ASIS_study @.PSIS_study @_knee_study @_mknee_study @_ankle_study @_mankle_study @_toe_study
        @_5meta_study @_calc_study @_shoulder_study @_lelbow_study @_melbow_study @_lwrist_study @_mwrist_study
        @_thigh1_study @_thigh2_study @_thigh3_study @_sh1_study @_sh2_study @_sh3_study LHJC_study RHJC_study
        C7_study
        """,
        bones="r_mknee_study:thigh.R L_sh2_study:shin.L L_lwrist_study:forearm.L r_5meta_study:foot.R RHJC_study:hips",
        sides=("L", "r"),
    ),
    "R.ASIS-style model set with clusters": Published(
        """
        @.ASIS @.PSIS @.Iliac.Crest @.GTROCH @.Thigh.1 @.Thigh.2 @.Thigh.3 @.Knee.Lat @.Knee.Med @.Shank.1
        @.Shank.2 @.Shank.3 @.Ankle.Lat @.Ankle.Med @.Heel @.MT1 @.MT5 @.Shoulder @.UpperArm.1 @.UpperArm.2
        @.Elbow.Lat @.Elbow.Med @.Forearm.1 @.Wrist.Rad @.Wrist.Uln @.Hand.1 C7 T10 Sternum
        """,
        bones="R.Shank.2:shin.R L.UpperArm.1:upper_arm.L L.Hand.1:hand.L R.GTROCH:thigh.R",
    ),
    "CAST with clusters": Published(
        """
        @ASIS @PSIS @GT @LE @ME @HF @TT @LM @MM @CA @FM @VM @TH1 @TH2 @TH3 @TH4 @SK1 @SK2 @SK3 @SK4 @FT1 @FT2
        @FT3
        """,
        bones="LTH4:thigh.L RSK1:shin.R LFT2:foot.L RLE:thigh.R RCA:foot.R",
    ),
    "IOR, the legs and the trunk": Published(
        """
        @ASIS @PSIS @GT @LE @ME @HF @TT @LM @MM @CA @FM @SM @VM @A C7 T2 MAI IJ PX L1 L3 L5
        """,
        bones="LHF:shin.L RA:shoulder.R MAI:chest PX:chest RVM:foot.R",
    ),
    "OptiTrack Biomech 57": Published(
        """
        @AH @PH @HGT @IAS @IPS @CAJ @HLE @HME @UA @HM2 @USP @RSP @FTC @FLE @FME @TH @SK @TTC @FAX @FAL @TAM @FM1
        @FM2 @FM5 @FCC @DP1 SJN SXS CV7 TV2 TV7
        """,
        bones="LFAX:shin.L RHM2:hand.R LFCC:foot.L TV7:chest",
    ),
    "OptiTrack Baseline 37": Published(
        """
        HeadTop HeadFront HeadSide BackTop BackLeft BackRight Chest Waist@Front Waist@Back @ShoulderTop
        @ShoulderBack @UArmHigh @ElbowOut @WristOut @WristIn @HandOut @Thigh @KneeOut @Shin @AnkleOut @ToeOut
        @ToeIn
        """,
        bones="WaistLFront:hips BackLeft:chest RWristIn:forearm.R LToeIn:foot.L",
    ),
    "Qualisys Sports": Published(
        """
        Q_HeadL Q_HeadR Q_HeadFront Q_SpineTop Q_Chest Q_BackL Q_BackR Q_WaistBack Q_@ShoulderTop
        Q_@ShoulderBack Q_@Arm Q_@ElbowOut Q_@ElbowIn Q_@WristOut Q_@WristIn Q_@HandOut Q_@HandIn Q_Waist@Front
        Q_Waist@ Q_@ThighFrontLow Q_@KneeOut Q_@KneeIn Q_@ShinFrontHigh Q_@AnkleOut Q_@HeelBack Q_@Forefoot2
        Q_@Forefoot5 Q_@ToeTip
        """,
        bones="Q_WaistL:hips Q_LForefoot5:foot.L Q_HeadL:head",
    ),
    "Xsens' points": Published(
        """
        p@ASI p@Acromion p@ArmLatEpicondyle p@ArmMedEpicondyle p@UlnarStyloid p@RadialStyloid p@Olecranon
        p@GreaterTrochanter p@KneeLatEpicondyle p@KneeMedEpicondyle p@Patella p@LatMalleolus p@MedMalleolus
        p@TibialTub p@HeelFoot p@FirstMetatarsal p@FifthMetatarsal p@Toe pSacrum pC7SpinalProcess pIJ pPX
        """,
        bones="pRightKneeMedEpicondyle:thigh.R pLeftOlecranon:forearm.L pRightFifthMetatarsal:foot.R",
        sides=("Left", "Right"),
    ),
    "KIT": Published(
        """
        @FHD @BHD @SHO @UPA @AEL @AOL @FRA @WTS @WPS @HTS @HPS @ASI @PSI @THI @KNE @ANK @HEE @TOE @MT1 @MT5 C7
        T10 L3 CLAV STRN RBAK LBAK
        """,
        bones="LHTS:hand.L RWPS:forearm.R LAOL:forearm.L",
    ),
    "French": Published(
        """
        @EIAS @EIPS @Troch @CondExt @CondInt @TTA @MalExt @MalInt @Calca @Meta1 @Meta5 @Acro @EpiExt @EpiInt
        @StylRad @StylUln @Cuisse1 @Cuisse2 @Jambe1 @Jambe2 C7 T10 Xipho Manub
        """,
        bones="GEIAS:hips DCalca:foot.R GCondInt:thigh.L DEpiExt:upper_arm.R GJambe2:shin.L DStylUln:forearm.R",
        sides=("G", "D"),
    ),
    "French, sides as English last letters": Published(
        """
        EIAS@ EIPS@ Calca@ Epi@ Genou@ Cheville@ Coude@ Poignet@
        """,
        bones="EIASr:hips Epil:upper_arm.L Calcar:foot.R",
        sides=("l", "r"),
    ),
    "Italian": Published(
        """
        SIAS@ SIPS@ Trocantere@ Ginocchio@ Caviglia@ Calcagno@ Meta5@ Acromion@ Gomito@ Polso@ Coscia1@ Gamba1@
        C7 Sacro
        """,
        bones="SIASdx:hips Gamba1sx:shin.L Calcagnodx:foot.R Gomitosx:upper_arm.L",
        sides=("sx", "dx"),
    ),
    "Spanish": Published(
        """
        EIAS_@ EIPS_@ Trocanter_@ Rodilla_@ Rodilla_med_@ Tobillo_@ Talon_@ Hombro_@ Codo_@ Muñeca_@
        """,
        bones="EIAS_der:hips Rodilla_med_izq:thigh.L Muñeca_der:forearm.R",
        sides=("izq", "der"),
    ),
    "German": Published(
        """
        @_SIAS @_SIPS @_Knie_außen @_Knie_innen @_Knöchel_außen @_Knöchel_innen @_Ferse @_Zeh @_Schulter
        @_Ellbogen @_Handgelenk
        """,
        bones="links_Knöchel_innen:shin.L rechts_Ferse:foot.R",
        sides=("links", "rechts"),
    ),
    "S2M, sides as last letters": Published(
        """
        ASIS@ PSIS@ KNEE@ KNEM@ ANKL@ MALM@ HEEL@ MT5@ SHO@
        """,
        bones="ASISr:hips KNEMl:thigh.L HEELr:foot.R",
        sides=("l", "r"),
    ),
    "Plug-in Gait, each label ending in 3D": Published(
        """
        @ASI_3D @PSI_3D @KNE_3D @ANK_3D @TOE_3D @SHO_3D @ELB_3D C7_3D CLAV_3D
        """,
        bones="LKNE_3D:thigh.L C7_3D:chest",
    ),
    "Davis, as BTS has it": Published(
        """
        c7 @.should sacrum @.asis @.bar.1 @.knee.1 @.bar.2 @.knee.2 @.mall @.heel @.met
        """,
        bones="r.bar.1:thigh.R l.knee.2:shin.L r.met:foot.R",
        sides=("r", "l"),
    ),
    "Human Body Model": Published(
        """
        @ASIS @PSIS @GTRO @LEK @MEK @LM @MM @HEE @TOE @MT5 @SHO @LEE @MEE @FRM @LW @MW @FIN @THI @ATI XIPH JN T10
        C7 NAVE THEAD @HEAD @DELT
        """,
        bones="LLEK:thigh.L RMEE:upper_arm.R LLW:forearm.L RATI:shin.R NAVE:hips",
    ),
    "Metatarsals as 1ST and 5TH": Published(
        """
        @ASIS @KNE @KNEM @ANK @ANKM @5TH @1ST @CALC @SHK1 @SHK2
        """,
        bones="R5TH:foot.R L1ST:foot.L",
    ),
    "Portuguese": Published(
        """
        EIAS@ EIPS@ Trocanter@ JoelhoLat@ JoelhoMed@ TornozeloLat@ Calcanhar@ Halux@ Ombro@ Cotovelo@ Punho@
        """,
        bones="JoelhoMedE:thigh.L CalcanharD:foot.R PunhoE:forearm.L",
        sides=("E", "D"),
    ),
    "Dutch": Published(
        """
        @_schouder @_elleboog @_pols @_heup @_knie @_enkel @_hiel @_teen
        """,
        bones="L_knie:thigh.L R_hiel:foot.R",
    ),
    "Japanese": Published(
        """
        @肩峰 @肘外側 @肘内側 @手関節橈側 @手関節尺側 @上前腸骨棘 @上後腸骨棘 @大転子
        @膝外側 @膝内側 @外果 @内果 @踵骨 @第1中足骨 @第5中足骨
        """,
        bones="左膝内側:thigh.L 右外果:shin.R 左手関節尺側:forearm.L 右第5中足骨:foot.R",
        sides=("左", "右"),
    ),
    "OpenPose BODY_25": Published(
        """
        @Shoulder @Elbow @Wrist @Hip @Knee @Ankle @Eye @Ear @BigToe @SmallToe @Heel Nose Neck MidHip
        """,
        bones="LHip:hips RBigToe:toe.R",
    ),
    "COCO": Published(
        """
        @_eye @_ear @_shoulder @_elbow @_wrist @_hip @_knee @_ankle nose
        """,
        bones="left_wrist:forearm.L",
        sides=("left", "right"),
    ),
    "MediaPipe": Published(
        """
        @_eye_inner @_eye @_eye_outer @_ear mouth_@ @_shoulder @_elbow @_wrist @_pinky @_index @_thumb @_hip
        @_knee @_ankle @_heel @_foot_index nose
        """,
        bones="left_foot_index:toe.L",
        sides=("left", "right"),
    ),
}
