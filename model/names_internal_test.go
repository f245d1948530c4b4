package model

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestWireName_FitsProviders(t *testing.T) {
	t.Parallel()
	long := "category." + strings.Repeat("a", 26) + ".b.c.d.e.f.g.h.i.j.k.l.m.n"
	names := []string{
		"data.searchRecords", "a.b.c", "a.b__c", "a__b.c", "a_.b", "a.b_c", "a_b.c", long, long + "o",
		"not a name", "ä.ö", strings.Repeat("x", 200), "",
	}
	require.LessOrEqual(t, len(long), jig.MaxToolNameLength)
	form := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	tools := make([]jig.Tool, len(names))
	seen := map[string]string{}
	for i, name := range names {
		wire := wireName(name)
		require.Regexp(t, form, wire, name)
		require.Empty(t, seen[wire], "%s and %s are both %s", name, seen[wire], wire)
		seen[wire] = name
		tools[i] = jig.Tool{Name: name}
	}
	back := namesOf(tools)
	for _, name := range names {
		require.Equal(t, name, toolName(back, wireName(name)))
	}
	require.Equal(t, "data__searchRecords", wireName("data.searchRecords"))
	require.Equal(t, "what.ever", toolName(back, "what__ever"))
}
