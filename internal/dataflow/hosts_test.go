package dataflow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/argument"
	"github.com/jig-run/jig/internal/dataflow"
)

// A host or an address that differs from a typed one only in what the comparison of words ignores may belong to somebody else.
func TestTrace_AddressesThatAreAlmostTyped(t *testing.T) {
	t.Parallel()
	tracer := dataflow.NewTracer(dataflow.Knowledge{
		Typed: []string{"Pay at www.bank.example, shop.example, strasse.example, maß.example or σοφοσ.example, or ask gross@mail.example and @eve@social.example."},
	})
	for name, c := range map[string]struct {
		value string
		want  traced
	}{
		"typed":                                     {`"www.bank.example"`, known},
		"typed, in other case":                      {`"WWW.Bank.Example"`, known},
		"typed, with a slash":                       {`"www.bank.example/"`, known},
		"a typed name as a host":                    {`"shop.example/"`, unknownTo},
		"typed, with an ideographic full stop":      {`"shop。example"`, known},
		"typed, with a sharp s":                     {`"MAß.example"`, known},
		"typed addresses in a list":                 {`"gross@mail.example, <GROSS@mail.example>"`, known},
		"a typed handle":                            {`"@eve@social.example"`, known},
		"emphasized in a text":                      {`"Ask _gross@mail.example_ and pay"`, known},
		"another label that begins like a sentence": {`"www.bank.example.Com"`, unknownTo},
		"such a label in front of a slash":          {`"shop.example.Com/"`, unknownTo},
		"ß for ss":                                  {`"https://straße.example"`, unknownTo},
		"ss for ß":                                  {`"https://mass.example"`, unknownTo},
		"ß for ss in an address":                    {`"groß@mail.example"`, unknownTo},
		"a capital ẞ for ss":                        {`"STRAẞE.example"`, unknownTo},
		"a capital ẞ for ß":                         {`"MAẞ.example"`, unknownTo},
		"a final sigma":                             {`"https://σοφος.example"`, unknownTo},
		"a joiner":                                  {`"sh\u200dop.example"`, unknownTo},
		"a joiner in a text":                        {`"Pay at sh\u200cop.example or ask"`, unknownTo},
		"another mailbox":                           {`"_gross@mail.example"`, unknownTo},
		"another mailbox in a list":                 {`"gross@mail.example,~gross@mail.example"`, unknownTo},
	} {
		require.Equal(t, c.want, judge(tracer, c.value, `{}`), name)
	}
}

// Arguments that the schema marks as URLs are written in canonical form before they are traced, however the principal has typed them.
func TestTrace_TypedURLsInCanonicalForm(t *testing.T) {
	t.Parallel()
	for typed, urls := range map[string]map[string]traced{
		"Read https://Shop.Example:443/A%41, please.": {
			"https://shop.example/AA": known, "https://shop.example/aa": unknownTo, "https://shop.example:8443/AA": unknownTo, "http://shop.example/AA": unknownTo,
		},
		`{"page":"HTTP://MÜNCHEN.example:80/"}`: {
			"http://xn--mnchen-3ya.example/": known, "http://xn--mnchen-3ya.example": known, "http://munchen.example/": unknownTo, "https://xn--mnchen-3ya.example/": unknownTo,
		},
		"Read www.Größe.example./b.": {"https://www.xn--gre-6ka8i.example/b": known, "https://www.xn--gre-6ka8i.example/c": unknownTo},
	} {
		tracer := dataflow.NewTracer(dataflow.Knowledge{Typed: []string{typed}})
		for url, want := range urls {
			got, err := argument.URL(url)
			require.NoError(t, err)
			require.Equal(t, url, got, "the canonical form")
			require.Equal(t, want, judge(tracer, `"`+url+`"`, `{"x-destination":true}`), "%s: %s", typed, url)
			require.Equal(t, want, judge(tracer, `"`+url+`"`, `{}`), "%s: %s", typed, url)
		}
	}
}
