package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// phrase says what an instance must be. It never repeats the instance, which may be secret or very long.
func phrase(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "must be of type " + strings.Join(k.Want, " or ") + ", not " + k.Got
	case *kind.Enum:
		return "must be one of " + values(k.Want)
	case *kind.Const:
		return "must be " + values([]any{k.Want})
	case *kind.Pattern:
		return "must match " + clip(k.Want)
	case *kind.Format:
		return "must be a valid " + k.Want
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %s, not %d", count(k.Want, "character"), k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %s, not %d", count(k.Want, "character"), k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %s, not %d", count(k.Want, "item"), k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %s, not %d", count(k.Want, "item"), k.Got)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d properties, not %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d properties, not %d", k.Want, k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("must not repeat items: %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be greater than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want)
	case *kind.FalseSchema:
		return "is not allowed here"
	case *kind.DependentRequired:
		return "needs " + clipList(k.Missing) + " beside " + clip(k.Prop)
	case *kind.Not:
		return "has a form that is not allowed"
	case *kind.PropertyNames:
		return "has a property whose name is not allowed: " + clip(k.Property)
	}
	return k.LocalizedString(message.NewPrinter(language.English))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func number(r *big.Rat) string {
	f, _ := r.Float64()
	b, err := json.Marshal(f)
	if err != nil {
		return r.RatString()
	}
	return string(b)
}

// values lists the values that a schema allows, at most a dozen.
func values(list []any) string {
	var words []string
	for _, v := range list[:min(12, len(list))] {
		b, err := json.Marshal(v)
		if err != nil {
			continue
		}
		words = append(words, clip(string(b)))
	}
	if len(list) > len(words) {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}

func clipList(names []string) string {
	var words []string
	for _, name := range names[:min(12, len(names))] {
		words = append(words, clip(name))
	}
	if len(names) > len(words) {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}

func unescapeFragment(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}
