package deps

import "strings"

// The risk classes.
const (
	riskLow     = "low"
	riskMedium  = "medium"
	riskUnknown = "unknown"
	riskHigh    = "high"
)

// The SPDX ids of each class, by prefix; the longest matching prefix decides. A license that matches none is unknown, and a person has to
// look.
const (
	// permissive licenses require notices at most.
	permissive = "MIT Apache- BSD- ISC 0BSD Unlicense CC0- Zlib zlib- BSL-1.0 PostgreSQL PSF- Python- CNRI- X11 NCSA BlueOak- UPL- Unicode- " +
		"Libpng libpng- FTL curl W3C bzip2- NTP ICU HPND AFL- ECL- OpenSSL ZPL- OLDAP- Beerware MulanPSL- PHP- Info-ZIP IJG CC-BY- CC-PDDC " +
		"PDDL- TCL Fair blessing SMLNJ Spencer- Qhull CDLA-Permissive- WTFPL SSH- eGenix Xnet XFree86- MirOS"
	// weakCopyleft licenses require that changes to the code itself are shared.
	weakCopyleft = "LGPL MPL- EPL- CDDL- CPL- IPL- APSL- MS-RL CECILL-C ErlPL- SISSL NPL- SPL- CC-BY-SA- CDLA-Sharing- ODbL- Artistic- ClArtistic"
	// strongCopyleft licenses require that the whole program is shared, or restrict who may use it and for what.
	strongCopyleft = "GPL- AGPL- SSPL- OSL- NPOSL- EUPL- CECILL- CPAL- RPL- Sleepycat copyleft-next- QPL- Parity- GFDL- CAL- BSD-Protection " +
		"CC-BY-NC- CC-BY-ND- PolyForm- Prosperity- CommonsClause Hippocratic- Aladdin Anti996 ADSL"
)

// riskOf returns the risk class of a license, given its SPDX id.
func riskOf(spdx string) string {
	risk, longest := riskUnknown, 0
	for class, list := range map[string]string{riskLow: permissive, riskMedium: weakCopyleft, riskHigh: strongCopyleft} {
		for beginning := range strings.FieldsSeq(list) {
			if strings.HasPrefix(spdx, beginning) && len(beginning) > longest {
				risk, longest = class, len(beginning)
			}
		}
	}
	return risk
}

// strictness orders the classes. An unknown license ranks below high, because it is not known to carry a high risk.
func strictness(risk string) int {
	switch risk {
	case riskLow:
		return 0
	case riskMedium:
		return 1
	case riskHigh:
		return 3
	}
	return 2
}
