package spec

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/duration"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/tenancy"
)

// field holds the constraints from the tags of a struct field. The decoder enforces them, and the published schema includes them.
type field struct {
	name     string
	index    []int
	kind     reflect.Type
	required bool
	// min and max are the bounds as the tag writes them: numbers, lengths or durations, depending on the field's type. They are empty if
	// there is no bound.
	min, max string
	form     string
	hint     string
	// term reports that the key sets a term of an approval.
	term bool
}

// form is a format that a text must have.
type form struct {
	pattern *regexp.Regexp
	hint    string
	// value is set if the form is for values and not for names. It decides which code a problem has.
	value bool
}

// formOf returns a form by the name that `spec` tags use.
func formOf(name string) form {
	switch name {
	case "name":
		return form{pattern: namePattern, hint: "use lower-case letters, digits, '.', '_' and '-', starting with a letter"}
	case "model":
		return form{pattern: modelPattern, hint: "write provider/model: anthropic/…, openai/… or script/…", value: true}
	case "model_choice":
		return form{pattern: modelChoicePattern, hint: `write provider/model, provider/* for all of a provider, or "*" for all`, value: true}
	case "tool":
		return form{pattern: whitelistPattern, hint: `write a tool's name ("file.read"), a category ("file.*") or "*" for all`}
	case "call":
		return form{pattern: toolPattern, hint: "use category.actionTarget, e.g. file.read"}
	case "variable":
		return form{pattern: variablePattern, hint: "use letters, digits and '_', starting with a lower-case letter"}
	case "spec_name":
		return form{pattern: specNamePattern, hint: "use category.actionTarget to make it callable as a tool; otherwise lower-case letters, digits, '.', '_' and '-'"}
	case "tool_name":
		return form{pattern: toolNamePattern, hint: "use category.actionTarget, e.g. file.read"}
	case "passes":
		return form{pattern: passesPattern, hint: "use a number from 1 to 100, or auto", value: true}
	case "permission":
		return oneOf("read", "draft", "write", "destructive")
	case "risk":
		return oneOf("safe", "moderate", "high")
	case "approval":
		return oneOf("auto", "always_ask")
	case "reads":
		return oneOf(jig.ReadsPrivate, jig.ReadsUntrusted)
	case "pointer":
		return form{pattern: pointerPattern, hint: "write a JSON pointer, e.g. /to or /recipients/0", value: true}
	case "prompt_mode":
		return oneOf("direct", "skill", "agent")
	case "on_expiry":
		return oneOf(string(jig.ExpiryDeny), string(jig.ExpiryCancel), string(jig.ExpiryFail))
	case "source":
		return oneOf(string(jig.SourceWeb), string(jig.SourceAPI), string(jig.SourceMCP), string(jig.SourceCLI), string(jig.SourceSchedule), string(jig.SourceAgent), string(jig.SourceTemporal))
	case "proof":
		return oneOf(string(jig.ProofClaimed), string(jig.ProofVouched), string(jig.ProofKey), string(jig.ProofPasskey))
	}
	return entityFormOf(name)
}

// entityFormOf returns a form used by entity types, thin tools and bundles.
func entityFormOf(name string) form {
	switch name {
	case "slug":
		return form{pattern: slugPattern, hint: "use lower-case letters, digits, '_' and '-', starting with a letter"}
	case "field_type":
		words := make([]string, 0, len(entity.FieldTypes()))
		for _, t := range entity.FieldTypes() {
			words = append(words, string(t))
		}
		return oneOf(words...)
	case "reason":
		return form{pattern: reasonPattern, hint: "use snake_case, e.g. insufficient_graph"}
	case "bundle":
		return form{pattern: namePattern, hint: "use lower-case letters, digits, '.', '_' and '-', starting with a letter, e.g. dependency-review"}
	case "semver":
		return form{pattern: semverPattern, hint: "write MAJOR.MINOR.PATCH, e.g. 1.4.0", value: true}
	}
	return tenantFormOf(name)
}

// tenantFormOf returns a form used by documents of kind tenant or budget. The form label is also used by rules of policies.
func tenantFormOf(name string) form {
	switch name {
	case "label":
		return form{pattern: labelPattern, hint: "use 1 to 128 characters on one line, without surrounding spaces"}
	case "tenant":
		return form{pattern: tenantPattern, hint: "write the tenant's id: 1 to 63 lower-case letters, digits, '_' or '-', starting with a letter or digit"}
	case "key":
		return form{pattern: keyPattern, hint: "use 1 to 64 letters, digits, '.', '_', ':' or '-', starting with a letter or digit"}
	case "issuer":
		return form{pattern: issuerPattern, hint: "write the issuer as in its tokens, e.g. https://login.example.com", value: true}
	case "secret":
		return form{pattern: secretPattern, hint: "name a variable of the worker's environment that starts with " + SecretPrefix + " and the tenant, e.g. " + SecretPrefix + "ACME__PORTAL"}
	case "starts":
		return oneOf(string(jig.ProofClaimed), string(jig.ProofVouched))
	case "signals":
		return oneOf(string(tenancy.SignalsTrusted), string(tenancy.SignalsSigned), string(tenancy.SignalsOff))
	case "algorithm":
		return oneOf(identity.AlgorithmEd25519, identity.AlgorithmHMAC, identity.AlgorithmWebAuthn)
	case "currency":
		return form{pattern: currencyPattern, hint: "write a currency's three capital letters, e.g. EUR", value: true}
	case "budget_level":
		return oneOf(string(budget.LevelTenant), string(budget.LevelAgent), string(budget.LevelSession), string(budget.LevelPass))
	case "budget_window":
		return oneOf(string(budget.WindowDay), string(budget.WindowTotal))
	case "budget_action":
		return oneOf(string(budget.ActionStop), string(budget.ActionAsk), string(budget.ActionDegrade))
	case "notice":
		words := make([]string, 0, len(jig.NoticeKinds()))
		for _, kind := range jig.NoticeKinds() {
			words = append(words, string(kind))
		}
		return oneOf(words...)
	}
	panic("spec: unknown form " + name)
}

// oneOf returns the form of a text that must be one of a few words.
func oneOf(words ...string) form {
	return form{
		pattern: regexp.MustCompile("^(" + strings.ReplaceAll(strings.Join(words, "|"), ".", `\.`) + ")$"),
		hint:    "use " + strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1], value: true,
	}
}

var (
	namePattern        = regexp.MustCompile(`^[a-z][a-z0-9._-]*$`)
	modelPattern       = regexp.MustCompile(`^(anthropic|openai|script)/\S+$`)
	modelChoicePattern = regexp.MustCompile(`^(\*|(anthropic|openai|script)/\S+)$`)
	whitelistPattern   = regexp.MustCompile(`^(\*|[a-z][a-z0-9_]*(\.[a-zA-Z][a-zA-Z0-9_]*)*\.(\*|[a-zA-Z][a-zA-Z0-9_]*))$`)
	toolPattern        = regexp.MustCompile(`^([a-z][a-z0-9_]*(\.[a-zA-Z][a-zA-Z0-9_]*)+|(?s:.*\$\{.+))$`)
	specNamePattern    = regexp.MustCompile(`^([a-z][a-z0-9._-]*|[a-z][a-z0-9_]*(\.[a-zA-Z][a-zA-Z0-9_]*)+)$`)
	toolNamePattern    = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-zA-Z][a-zA-Z0-9_]*)+$`)
	passesPattern      = regexp.MustCompile(`^([1-9][0-9]?|100|auto)$`)
	variablePattern    = regexp.MustCompile(`^[a-z][a-zA-Z0-9_]*$`)
	pointerPattern     = regexp.MustCompile(`^(/.*)?$`)
	labelPattern       = regexp.MustCompile(`^\S(.{0,126}\S)?$`)
	reasonPattern      = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	semverPattern      = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})(\.(0|[1-9][0-9]{0,8})){2}(-[0-9A-Za-z.-]{1,64})?$`)
	currencyPattern    = regexp.MustCompile(`^[A-Z]{3}$`)
	slugPattern        = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)
	tenantPattern      = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
	keyPattern         = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)
	issuerPattern      = regexp.MustCompile(`^https?://[^\s?#]{1,240}$`)
	secretPattern      = regexp.MustCompile(`^` + SecretPrefix + `[A-Z0-9_]{1,200}$`)
)

// fieldsOf reads the tags of a struct's fields, including those of embedded structs.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for _, sf := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if sf.Anonymous || name == "" || name == "-" {
			continue
		}
		f := field{name: name, index: sf.Index, kind: sf.Type, hint: sf.Tag.Get("hint")}
		for _, word := range strings.FieldsFunc(sf.Tag.Get("spec"), func(r rune) bool { return r == ',' }) {
			key, value, _ := strings.Cut(word, "=")
			switch key {
			case "required":
				f.required = true
			case "min":
				f.min = value
			case "max":
				f.max = value
			case "form":
				f.form = value
			case "term":
				f.term = true
			default:
				panic("spec: unknown tag " + word)
			}
		}
		fields = append(fields, f)
	}
	return fields
}

// check checks a value against the bounds and the form of its field.
func (d *decoder) check(path string, v reflect.Value, f field) {
	if v.Kind() == reflect.Pointer {
		v, f.kind = v.Elem(), f.kind.Elem()
	}
	switch v.Kind() { //nolint:exhaustive // only these kinds have bounds
	case reflect.Int, reflect.Int64:
		d.checkNumber(path, v, f)
	case reflect.String:
		d.checkLength(path, len(v.String()), "characters", f)
		if f.form != "" {
			d.checkForm(path, v.String(), f.form)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		d.checkLength(path, v.Len(), "entries", f)
		if f.form != "" {
			for i := range v.Len() {
				d.checkForm(indexPath(path, i), v.Index(i).String(), f.form)
			}
		}
	default:
	}
}

func (d *decoder) checkNumber(path string, v reflect.Value, f field) {
	low, high := bound(f.min, f.kind), bound(f.max, f.kind)
	if (f.min == "" || v.Int() >= low) && (f.max == "" || v.Int() <= high) {
		return
	}
	shown := any(v.Int())
	if length, ok := v.Interface().(Duration); ok {
		shown = length
	}
	d.at(path, ProblemOutOfRange, rangeHint(f), "%v is out of range", shown)
}

func (d *decoder) checkLength(path string, length int, unit string, f field) {
	low, high := bound(f.min, f.kind), bound(f.max, f.kind)
	if (f.min == "" || int64(length) >= low) && (f.max == "" || int64(length) <= high) {
		return
	}
	d.at(path, ProblemOutOfRange, rangeHint(f)+" "+unit, "this has %d %s", length, jig.Known(unit))
}

func (d *decoder) checkForm(path, text, name string) {
	f := formOf(name)
	if f.pattern.MatchString(text) {
		if name != "label" {
			return
		}
		err := identity.CheckName(text)
		if err == nil {
			return
		}
		f.hint = jig.AsError(err).Message
	}
	code := ProblemBadName
	if f.value {
		code = ProblemBadValue
	}
	d.at(path, code, f.hint, "%q is not allowed here", text)
}

func rangeHint(f field) string {
	switch {
	case f.max == "":
		return fmt.Sprintf("use at least %s", f.min)
	case f.min == "":
		return fmt.Sprintf("use at most %s", f.max)
	}
	return fmt.Sprintf("use %s to %s", f.min, f.max)
}

// bound parses a bound according to the field's type. It returns 0 if there is none.
func bound(text string, t reflect.Type) int64 {
	if text == "" {
		return 0
	}
	if t == reflect.TypeFor[Duration]() {
		d, err := duration.Parse(text)
		if err != nil {
			panic("spec: bad bound " + text)
		}
		return int64(d)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("spec: bad bound " + text)
	}
	return n
}
