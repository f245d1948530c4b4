package deps_test

import (
	"testing"

	"github.com/google/licensecheck"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/bundles/deps"
)

func TestRisk_FollowsFromTheFacts(t *testing.T) {
	t.Parallel()
	for spdx, want := range map[string]string{
		"MIT": "low", "MIT-0": "low", "Apache-2.0": "low", "BSD-3-Clause": "low", "BSD-Protection": "high", "ISC": "low",
		"MPL-2.0": "medium", "LGPL-2.1-only": "medium", "EPL-2.0": "medium", "CECILL-C": "medium", "CECILL-2.1": "high",
		"GPL-3.0-or-later": "high", "AGPL-3.0": "high", "SSPL-1.0": "high", "CC-BY-4.0": "low", "CC-BY-NC-4.0": "high",
		"CC-BY-SA-4.0": "medium", "JSON": "unknown", "UNKNOWN": "unknown", "": "unknown",
	} {
		require.Equal(t, want, deps.RiskOf(spdx), spdx)
	}
}

func TestRisk_OfCopyleftIsNeverLow(t *testing.T) {
	t.Parallel()
	for _, l := range licensecheck.BuiltinLicenses() {
		for _, beginning := range []string{"GPL", "AGPL", "LGPL", "SSPL", "MPL", "EPL", "EUPL", "OSL", "CC-BY-NC", "CC-BY-ND", "CC-BY-SA", "CDDL", "GFDL"} {
			if len(l.ID) >= len(beginning) && l.ID[:len(beginning)] == beginning {
				require.NotEqual(t, "low", deps.RiskOf(l.ID), l.ID)
			}
		}
	}
}
