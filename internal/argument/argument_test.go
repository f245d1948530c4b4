package argument_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/argument"
)

func TestPath_IsWrittenInOneWay(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"payroll/b.txt": "payroll/b.txt", "./payroll/a.txt": "payroll/a.txt", "payroll//d.txt": "payroll/d.txt", "payroll/./d.txt": "payroll/d.txt",
		"payroll/": "payroll", ".": ".", "./": ".", "": ".", "a/.": "a", ".env": ".env", "a..b/...": "a..b/...", "FREE/a.txt": "FREE/a.txt", "a b/ü": "a b/ü",
	} {
		got, err := argument.Path(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := argument.Path(got)
		require.NoError(t, err)
		require.Equal(t, got, again, text)
	}
	for _, text := range []string{
		"free/../payroll/b.txt", "..", "../a", "a/..", "a/../", "/etc/passwd", "/", "//a", `a\b`, `free\..\payroll`, "a\x00b", "a\nb", "a\x7f", "a\u0085b",
	} {
		_, err := argument.Path(text)
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), text)
		require.NotEmpty(t, jig.AsError(err).Hint, text)
	}
}

func TestURL_IsWrittenInOneWay(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://example.com":                        "https://example.com",
		"HTTPS://Example.COM/Path?Q=1#F":             "https://example.com/Path?Q=1#F",
		"http://example.com:80/":                     "http://example.com/",
		"https://example.com:443":                    "https://example.com",
		"https://example.com:/a":                     "https://example.com/a",
		"https://example.com:0443/a":                 "https://example.com/a",
		"http://example.com:443/a":                   "http://example.com:443/a",
		"https://example.com:8443/a":                 "https://example.com:8443/a",
		"https://example.com./a":                     "https://example.com/a",
		"https://bücher.example/a":                   "https://xn--bcher-kva.example/a",
		"https://BÜCHER.example/a":                   "https://xn--bcher-kva.example/a",
		"https://example\u3002com/":                  "https://example.com/",
		"https://\uff11\uff12\uff17.0.0.1/":          "https://127.0.0.1/",
		"http://127.0.0.1:8080/x":                    "http://127.0.0.1:8080/x",
		"http://[::1]:80/":                           "http://[::1]/",
		"http://[0:0:0:0:0:0:0:1]/":                  "http://[::1]/",
		"http://[2001:DB8::0001]/a":                  "http://[2001:db8::1]/a",
		"https://example.com/%70ayroll/%7Eana?x=%2F": "https://example.com/payroll/~ana?x=%2F",
		"https://example.com/a%20b?q=..&r=/../":      "https://example.com/a%20b?q=..&r=/../",
		"https://example.com/a%252570":               "https://example.com/a%252570",
		"https://my_host.example/":                   "https://my_host.example/",
		"https://example.com/a@b":                    "https://example.com/a@b",
		"https://1e3.example/":                       "https://1e3.example/",
	} {
		got, err := argument.URL(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := argument.URL(got)
		require.NoError(t, err, text)
		require.Equal(t, got, again, text)
	}
	for _, text := range []string{
		"", "example.com", "//example.com/a", "https:example.com", "https:/example.com", "https:///a", "mailto:a@example.com",
		"https://ana@example.com/", "https://ana:pw@example.com/", "https://@example.com/", "https://example.com@evil.example/",
		`https://example.com\@evil.example/`, `https:\\example.com`, "https://example.com/\x00", "https://exam\nple.com/", "https://example.com/a b", " https://example.com",
		"https://example.com/../a", "https://example.com/a/./b", "https://example.com/a/%2e%2e/b", "https://example.com/a/.%2E/b", "https://example.com/%2e",
		"https://example.com/a/..%2fb", "https://example.com/a/%252e%252e/b", "https://example.com/a/..;x/b", "https://example.com/a/..%5cb",
		"http://2130706433/", "http://127.1/", "http://0x7f.1/", "http://0x7f000001/", "http://0177.0.0.1/", "http://127.0.0.1.1/", "http://256.0.0.1/",
		"http://example.0x1f/", "http://[::ffff:127.0.0.1]/", "http://[fe80::1%25eth0]/", "http://[::g]/", "http://\uff11\uff12\uff17.1/",
		"http://example..com/", "http://./", "http://example.com:99999/", "https://example.com/?q=100%", "https://example.com\uff0fa/",
	} {
		_, err := argument.URL(text)
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), "%q", text)
		require.NotEmpty(t, jig.AsError(err).Hint, text)
	}
}

// A mark counts wherever the schema puts it.
func TestCanonical_FindsMarksAnywhere(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{
		"path":{"type":"string","x-path":true},
		"url":{"type":"string","x-url":true},
		"list":{"type":"array","items":{"$ref":"#/$defs/p"}},
		"pair":{"type":"array","prefixItems":[{"x-url":true},{"$ref":"#file"}],"items":{"x-path":true}},
		"deep":{"type":"object","properties":{"to":{"anyOf":[{"type":"null"},{"type":"string","x-path":true}]}}},
		"either":{"oneOf":[{"x-path":true,"pattern":"^[^:]*$"},{"x-url":true,"format":"uri"}]},
		"tree":{"$ref":"#/$defs/tree"},
		"map":{"type":"object","patternProperties":{"^p_":{"x-path":true}},"additionalProperties":{"x-url":true}},
		"free":{"type":"string"},"off":{"x-path":false}},
		"allOf":[{"if":{"required":["path"]},"then":{"properties":{"other":{"x-path":true}}}}],
		"$defs":{"p":{"$anchor":"file","type":"string","x-path":true},
			"tree":{"properties":{"name":{"x-path":true},"below":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}}}`
	for input, want := range map[string]string{
		`{"path":"./a"}`:                                        `{"path":"a"}`,
		`{"url":"HTTPS://A.example:443/x"}`:                     `{"url":"https://a.example/x"}`,
		`{"list":["a//b","c"]}`:                                 `{"list":["a/b","c"]}`,
		`{"pair":["HTTP://A.example","./b","c/"]}`:              `{"pair":["http://a.example","b","c"]}`,
		`{"deep":{"to":"./b"}}`:                                 `{"deep":{"to":"b"}}`,
		`{"deep":{"to":null}}`:                                  `{"deep":{"to":null}}`,
		`{"either":"a//b"}`:                                     `{"either":"a/b"}`,
		`{"either":"HTTPS://A.example/a//b"}`:                   `{"either":"https://a.example/a//b"}`,
		`{"tree":{"below":[{"below":[{"name":"a/"}]}]}}`:        `{"tree":{"below":[{"below":[{"name":"a"}]}]}}`,
		`{"map":{"p_x":"./a","other":"HTTP://A.example"}}`:      `{"map":{"p_x":"a","other":"http://a.example"}}`,
		`{"path":"a","other":"b/./c"}`:                          `{"path":"a","other":"b/c"}`,
		`{"free":"a//b","off":"../c","n":12345678901234567890}`: `{"free":"a//b","off":"../c","n":12345678901234567890}`,
		`{"path":7}`: `{"path":7}`,
		`{"path":`:   `{"path":`,
	} {
		got, err := argument.Canonical(json.RawMessage(schema), json.RawMessage(input))
		require.NoError(t, err, input)
		if !json.Valid([]byte(want)) {
			require.Equal(t, want, string(got))
			continue
		}
		require.JSONEq(t, want, string(got), input)
	}
	for input, field := range map[string]string{
		`{"path":"a/../b"}`: "/path", `{"list":["a","../b"]}`: "/list/1", `{"tree":{"below":[{"name":"/a"}]}}`: "/tree/below/0/name",
		`{"deep":{"to":"a\\b"}}`: "/deep/to", `{"url":"http://0x7f.1/"}`: "/url", `{"map":{"p_a":".."}}`: "/map/p_a",
	} {
		_, err := argument.Canonical(json.RawMessage(schema), json.RawMessage(input))
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), input)
		require.Equal(t, field, jig.AsError(err).Field, input)
		require.NotEmpty(t, jig.AsError(err).Hint, input)
	}
}

// A schema that refers to itself ends.
func TestCanonical_CircularReferencesEnd(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"$ref":"#","properties":{"path":{"x-path":true}}}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"$ref":"#/$defs/a"},{"properties":{"path":{"x-path":true}}}]}}}`,
	} {
		got, err := argument.Canonical(json.RawMessage(schema), json.RawMessage(`{"path":"./a"}`))
		require.NoError(t, err)
		require.JSONEq(t, `{"path":"a"}`, string(got))
	}
}
