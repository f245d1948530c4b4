package spec

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/suggest"
)

// contradictions reports where a description and the contract disagree. It recognizes a few plain phrases and ignores everything else,
// because a false alarm costs more than a missed mistake.
func (a *advisor) contradictions(t jig.Tool, others map[string]bool) {
	text := t.Description
	if strings.TrimSpace(text) == "" {
		return
	}
	input, output := readSchema(t.InputSchema), readSchema(t.OutputSchema)
	a.mentions(text, input, output, others)
	a.necessity(text, input)
	a.lists(text, output)
	a.effects(text, t.Permission)
}

// schemaWords summarizes a schema for comparison with a description.
type schemaWords struct {
	// words are all names and values in the schema.
	words map[string]bool
	// members holds the members at the top level; the value is true for required ones.
	members map[string]bool
	// defaults are the members that get a value if they are left out.
	defaults map[string]bool
	// closed is set if the schema allows only the listed members. lists is set if a value may contain a list, or if that is unknown.
	closed, lists bool
}

func readSchema(raw json.RawMessage) schemaWords {
	s := schemaWords{words: map[string]bool{}, members: map[string]bool{}, defaults: map[string]bool{}}
	value, ok := decodeLoosely(raw)
	top, isObject := value.(map[string]any)
	if !ok || !isObject {
		s.lists = true
		return s
	}
	s.gather(top, 0)
	properties, _ := top["properties"].(map[string]any) //nolint:errcheck // nil when there are none
	for name, property := range properties {
		s.members[name] = false
		s.defaults[name] = hasDefault(property)
	}
	for _, word := range list(top["required"]) {
		if name, isText := word.(string); isText {
			s.members[name] = true
		}
	}
	rest, given := top["additionalProperties"]
	s.closed = len(properties) > 0 && (!given || rest == false)
	for _, word := range []string{"patternProperties", "$ref", "allOf", "anyOf", "oneOf", "if", "$dynamicRef"} {
		if top[word] != nil {
			s.closed = false
		}
	}
	s.lists = s.lists || mayHoldList(top, 0)
	return s
}

// gather collects the names, values and words of a schema at any depth.
func (s *schemaWords) gather(v any, depth int) {
	if depth > maxFitDepth {
		return
	}
	switch x := v.(type) {
	case map[string]any:
		for key, inner := range x {
			s.words[key] = true
			s.gather(inner, depth+1)
		}
	case []any:
		for _, inner := range x {
			s.gather(inner, depth+1)
		}
	case string:
		s.words[x] = true
		for _, word := range identifier.FindAllString(x, -1) {
			s.words[word] = true
		}
	}
}

// mayHoldList reports whether a value of the schema may be, or contain, a list.
func mayHoldList(schema any, depth int) bool {
	s, ok := schema.(map[string]any)
	if !ok || depth > maxFitDepth {
		return true
	}
	types := list(s["type"])
	if one, isText := s["type"].(string); isText {
		types = []any{one}
	}
	if len(types) == 0 && s["enum"] == nil && s["const"] == nil {
		return true
	}
	if slices.Contains(types, any("array")) {
		return true
	}
	if !slices.Contains(types, any("object")) {
		return false
	}
	properties, _ := s["properties"].(map[string]any) //nolint:errcheck // nil when there are none
	if len(properties) == 0 {
		return true
	}
	for _, property := range properties {
		if mayHoldList(property, depth+1) {
			return true
		}
	}
	rest, given := s["additionalProperties"]
	return given && rest != false
}

var (
	identifier = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	// ticked matches a name in backticks, with the word before it.
	ticked = regexp.MustCompile("(?:(\\w+)[ (]+)?`([a-z][A-Za-z0-9_]*)`")
	// quoted matches a name in quotes that has a word such as "parameter" before or after it.
	quoted = regexp.MustCompile(`(?i:\b(?:parameter|param|argument|arg|field|property|option)s?)\s+["'“‘]([a-z][A-Za-z0-9_]*)["'”’]` +
		`|["'“‘]([a-z][A-Za-z0-9_]*)["'”’]\s+(?i:parameter|param|argument|arg|field|property|option)\b`)
	// beforeOther holds words that show that the name in backticks after them is not a parameter but, for example, a program or a value.
	beforeOther = wordSet(`run runs running call calls calling command commands program binary tool tools via like library package module
		type table event events function method class keyword format language to into as equals returns return gives is are be default value
		values mode status state header file files folder directory extension named called of another unlike e g says say means tag branch`)
	sentenceEnd = regexp.MustCompile(`[.;!?](?:\s|$)|\n\n`)
	givesBack   = regexp.MustCompile(`(?i)\b(returns?|gives?|yields?|outputs?|results?|answers?)\b`)
	usualWords  = wordSet(`true false null string number integer boolean object array json yaml csv xml html markdown text utf8 int float bool`)
)

var abbreviations = strings.NewReplacer("e.g.", "like", "i.e.", "like", "etc.", "etc")

func sentences(text string) []string { return sentenceEnd.Split(abbreviations.Replace(text), -1) }

// mentions reports parameters that a description mentions but the schema does not have.
func (a *advisor) mentions(text string, input, output schemaWords, others map[string]bool) {
	if !input.closed {
		return
	}
	said := map[string]bool{}
	mention := func(name string) {
		if said[name] || input.words[name] || output.words[name] || others[name] || usualWords[strings.ToLower(name)] {
			return
		}
		said[name] = true
		a.say("description", ProblemContradiction, suggest.OrKnown(name, slices.Sorted(maps.Keys(input.members))),
			"the description mentions %q, but the input_schema has no such parameter", name)
	}
	for _, sentence := range sentences(text) {
		for _, m := range quoted.FindAllStringSubmatch(sentence, -1) {
			mention(m[1] + m[2])
		}
		if givesBack.MatchString(sentence) && !output.closed {
			continue // it may be part of the result
		}
		for _, m := range ticked.FindAllStringSubmatch(sentence, -1) {
			if !beforeOther[strings.ToLower(m[1])] {
				mention(m[2])
			}
		}
	}
}

// conditional matches words that make a parameter necessary only in some cases.
var conditional = regexp.MustCompile(`(?i)\b(if|when|unless|or|either|except|otherwise|without|only|once|after|not)\b`)

const quotes = "[`\"'“”‘’]?"

// aName matches a name, in quotes or not. noLonger matches the character after the name, or the end of the text, so that aName matches
// only whole names. aWordFor matches an optional word such as "parameter" before the name.
const (
	aName    = quotes + `([A-Za-z_][A-Za-z0-9_]*)` + quotes
	noLonger = `(?:[\s,:)]|$)`
	aWordFor = `(?:(?i:parameter|argument|field) )?`
)

var (
	calledOptional = regexp.MustCompile(`\b(?i:optional)(?:ly)? ` + aWordFor + aName + noLonger +
		`|(?:^|[\s(])` + aName + ` (?i:is optional\b|\(optional\b|may be left out|can be left out|can be omitted|may be omitted)`)
	calledRequired = regexp.MustCompile(`\b(?i:required) ` + aWordFor + aName + noLonger +
		`|(?:^|[\s(])` + aName + ` (?i:is required\b|\(required\b|is mandatory|must be (?:given|set|provided|present|specified|passed|supplied))` +
		`|\b(?i:must (?:give|set|provide|specify|pass|supply)) (?:(?i:a|an|the) )?` + aName + noLonger)
)

// necessity reports parameters that a description calls optional and the schema requires, or the other way round.
func (a *advisor) necessity(text string, input schemaWords) {
	said := map[string]bool{}
	each := func(form *regexp.Regexp, sentence string, about func(name string, must bool)) {
		for _, m := range form.FindAllStringSubmatch(sentence, -1) {
			name := strings.Join(m[1:], "")
			if must, known := input.members[name]; known && !said[name] {
				about(name, must)
			}
		}
	}
	for _, sentence := range sentences(text) {
		if conditional.MatchString(sentence) {
			continue
		}
		each(calledOptional, sentence, func(name string, must bool) {
			if said[name] = must && !input.defaults[name]; said[name] {
				a.say("description", ProblemContradiction, "remove it from required, or say that it is needed",
					"the description calls %q optional, but the input_schema requires it", name)
			}
		})
		each(calledRequired, sentence, func(name string, must bool) {
			if said[name] = !must; said[name] {
				a.say("description", ProblemContradiction, "add it to required, or say what happens without it",
					"the description calls %q required, but the input_schema does not require it", name)
			}
		})
	}
}

var returnsList = regexp.MustCompile(`(?i)\b(?:returns?|gives? back|gives|yields?|outputs?)(?: back)? (?:(?:an?|the|its) )?` +
	`(?:(?:sorted|ordered|unordered|complete|full|whole|flat|paginated|filtered|plain|json|short|long|updated|ranked|unique) ){0,2}` +
	`(?:list|array)(?:\s+(?:of|with|containing|that|sorted|ordered|in|for|from)\b|[.,;:)]|\s*$)`)

var asText = regexp.MustCompile(`(?i)\b(text|markdown|string|csv|html|yaml|lines?|comma|separated|table)\b`)

// lists reports a description that promises a list if the result cannot contain one.
func (a *advisor) lists(text string, output schemaWords) {
	if output.lists {
		return
	}
	for _, sentence := range sentences(text) {
		if found := returnsList.FindString(sentence); found != "" && !asText.MatchString(sentence) {
			a.say("description", ProblemContradiction, "say what the output_schema says", "the description promises a list (%q), but the output_schema contains none", strings.TrimRight(strings.TrimSpace(found), ".,;:)"))
			return
		}
	}
}

var (
	readOnly = regexp.MustCompile(`(?i)(?:^|\bis |\bthis |\ba |\bentirely |\bstrictly |\bpurely )read[- ]only(?:\s+(?:tool|operation|call|access|query|action)\b|\s*(?:[,:)]|$)| and\b)` +
		`|\b(?:does not|doesn't|do not|never|without) (?:chang|modif|alter|writ|updat)\w*(?: or (?:chang|modif|alter|writ|delet|updat)\w*)?(?: (?:anything|any data|data|any state|state))?\s*(?:[,:)]|$)` +
		`|\b(?:changes|modifies|writes) nothing\b|\b(?:has no|without) side[- ]effects?\b`)
	// takesAway matches a verb that says what the tool does, at the beginning of a sentence or after another such verb.
	takesAway = regexp.MustCompile(`(?i)(?:^\s*(?:\w+s,? (?:and|or|then) )?(?:(?:permanently|irreversibly|also|then) )?|\b(?:it|tool|and then|which then) (?:(?:permanently|irreversibly|also|then) )?|[a-z], (?:and |then )?)(deletes|removes|overwrites|erases)\b\s*(?:(?:all|any|the|an|a|every) )*(\w*)`)
	// harmless lists things that a tool can remove from a result without changing any data.
	harmless = wordSet(`duplicate duplicates whitespace white spaces blank empty formatting markup tags html noise stop stopwords comments accents
		diacritics punctuation leading trailing nothing entries rows results outliers prefix suffix quotes from`)
)

// effects reports a description that contradicts the contract's permission.
func (a *advisor) effects(text string, permission jig.Permission) {
	for _, sentence := range sentences(text) {
		switch permission {
		case jig.PermissionWrite, jig.PermissionDestructive:
			if found := readOnly.FindString(sentence); found != "" && !strings.Contains(strings.ToLower(sentence), "unless") {
				a.say("description", ProblemContradiction, "say what it changes, or give it permission: read", "the description says %q, but the permission is %s", strings.Trim(found, " ,:)"), permission)
				return
			}
		case jig.PermissionRead:
			if m := takesAway.FindStringSubmatch(sentence); m != nil && !harmless[strings.ToLower(m[2])] {
				a.say("description", ProblemContradiction, "give it permission: write or destructive", "the description says that it %s, but the permission is read", strings.ToLower(m[1]))
				return
			}
		case jig.PermissionDraft: // drafts may be changed and thrown away
		}
	}
}
