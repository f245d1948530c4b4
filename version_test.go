package jig_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestPeopleSeeSixteenDigitsOfAVersion(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("0123456789abcdef", 4)
	for in, want := range map[string]string{
		full:                                  "0123456789abcdef",
		"shop@" + full:                        "shop@0123456789abcdef",
		"shop@" + full + " till@" + full:      "shop@0123456789abcdef till@0123456789abcdef",
		"policy/shop@" + full:                 "policy/shop@0123456789abcdef",
		"0123456789abcdef":                    "0123456789abcdef",
		"1.4.0":                               "1.4.0",
		"":                                    "",
		full + "0":                            full + "0",
		strings.ToUpper(full):                 strings.ToUpper(full),
		"bundle/a@1.0.0+" + full + ", really": "bundle/a@1.0.0+0123456789abcdef, really",
	} {
		require.Equal(t, want, jig.ShortVersion(in))
	}
}
