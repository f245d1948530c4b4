package dataflow

import "strings"

// judgement is what is known about one value.
type judgement struct {
	untrusted, computed, destination bool
	calls                            []string
}

// judge traces one value.
func (t *Tracer) judge(text string, _, destination bool) judgement {
	value := " " + words(text) + " "
	if strings.TrimSpace(value) == "" {
		return judgement{}
	}
	for _, typed := range t.k.Typed {
		if strings.Contains(" "+words(typed)+" ", value) {
			return judgement{}
		}
	}
	for _, r := range t.k.Trusted {
		if strings.Contains(" "+words(r.Text)+" ", value) {
			return judgement{}
		}
	}
	j := judgement{untrusted: true, destination: destination || strings.ContainsAny(text, "@") || strings.Contains(text, "://")}
	for _, r := range t.k.Untrusted {
		if len(j.calls) < maxCalls && strings.Contains(" "+words(r.Text)+" ", value) {
			j.calls = append(j.calls, r.Call)
		}
	}
	return j
}

// words separates the words of a text by single spaces, without punctuation around them.
func words(text string) string {
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'(){}[]<>,;`", r) })
	for i, f := range fields {
		fields[i] = strings.Trim(f, ".:!?")
	}
	return strings.Join(fields, " ")
}
