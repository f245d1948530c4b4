package schema_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/schema"
)

// instance returns a value that fits person; with 2 items it has the size of a usual tool input, with more it is large.
func instance(items int) []byte {
	tags := make([]string, items)
	for i := range tags {
		tags[i] = fmt.Sprintf(`"tag number %d"`, i)
	}
	return []byte(`{"name":"Ana","age":41,"role":"writer","size":1.5,"home":{"street/no":"Long Street 7"},"tags":[` + strings.Join(tags, ",") + `]}`)
}

func BenchmarkValidate(b *testing.B) {
	wide := strings.Replace(person, `"maxItems": 2`, `"maxItems": 100000`, 1)
	for _, items := range []int{2, 1000} {
		input := instance(items)
		b.Run(fmt.Sprintf("raw/%d", items), func(b *testing.B) {
			document, err := jsonschema.UnmarshalJSON(strings.NewReader(wide))
			require.NoError(b, err)
			c := jsonschema.NewCompiler()
			require.NoError(b, c.AddResource("x.json", document))
			s, err := c.Compile("x.json")
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				v, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
				if err == nil {
					err = s.Validate(v)
				}
				require.NoError(b, err)
			}
		})
		b.Run(fmt.Sprintf("jig/%d", items), func(b *testing.B) {
			s := compile(b, wide, schema.Options{ExactNumbers: true})
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, s.Validate(input))
			}
		})
	}
	b.Run("compile/cached", func(b *testing.B) {
		c := schema.NewCompiler(schema.Options{})
		for b.Loop() {
			_, err := c.Compile([]byte(person))
			require.NoError(b, err)
		}
	})
}
