package jig_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestLabels_AToolWithoutLabelsReadsUntrustedData(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tool                     jig.Tool
		private, untrusted, send bool
	}{
		"without labels":          {tool: jig.Tool{Implementation: "go"}, untrusted: true},
		"answered by a person":    {tool: jig.Tool{Implementation: jig.ImplementationPerson}, untrusted: true},
		"a document":              {tool: jig.Tool{Implementation: "composition"}},
		"a thin tool":             {tool: jig.Tool{Implementation: "thin_tool"}, private: true},
		"a document with labels":  {tool: jig.Tool{Implementation: "composition", Labels: &jig.Labels{Reads: []string{jig.ReadsUntrusted}}}, untrusted: true},
		"empty labels":            {tool: jig.Tool{Labels: &jig.Labels{}}},
		"private":                 {tool: jig.Tool{Labels: &jig.Labels{Reads: []string{jig.ReadsPrivate}}}, private: true},
		"untrusted, and it sends": {tool: jig.Tool{Labels: &jig.Labels{Reads: []string{jig.ReadsUntrusted}, Sends: true}}, untrusted: true, send: true},
		"private and untrusted":   {tool: jig.Tool{Labels: &jig.Labels{Reads: []string{jig.ReadsPrivate, jig.ReadsUntrusted}}}, private: true, untrusted: true},
	} {
		require.Equal(t, test.private, test.tool.Reads(jig.ReadsPrivate), name)
		require.Equal(t, test.untrusted, test.tool.Reads(jig.ReadsUntrusted), name)
		require.Equal(t, test.send, test.tool.Sends(), name)
	}
}

func TestLabels_AreChecked(t *testing.T) {
	t.Parallel()
	require.NoError(t, (*jig.Labels)(nil).Check())
	require.NoError(t, (&jig.Labels{Reads: []string{"untrusted", "private"}}).Check())
	for _, reads := range [][]string{{"secret"}, {""}, {"private", "private"}} {
		err := (&jig.Labels{Reads: reads}).Check()
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
		require.Equal(t, "labels.reads", jig.AsError(err).Field)
	}
}

func TestDestinations_AreTrueOrFalse(t *testing.T) {
	t.Parallel()
	for schema, field := range map[string]string{
		`{"properties": {"to": {"type": "string", "x-destination": true}, "cc": {"items": {"x-destination": false}}}}`: "",
		`{"properties": {"x-destination": {"type": "string"}}}`:                                                        "",
		`{"properties": {"to": {"default": {"x-destination": 1}, "const": {"x-destination": 1}}}}`:                     "",
		`{"properties": {"to": {"x-destination": "yes"}}}`:                                                             "/properties/to/x-destination",
		`{"properties": {"to": {"items": {"anyOf": [{}, {"x-destination": 1}]}}}}`:                                     "/properties/to/items/anyOf/1/x-destination",
		`{"$defs": {"address": {"x-destination": null}}}`:                                                              "/$defs/address/x-destination",
		`not JSON`: "",
	} {
		err := jig.CheckMarks(json.RawMessage(schema))
		if field == "" {
			require.NoError(t, err, schema)
			continue
		}
		require.Equal(t, field, jig.AsError(err).Field, schema)
	}
}
