package spec

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/suggest"
)

// The problems that Advise finds. None of them prevents a document from being used.
const (
	ProblemVagueDescription ProblemCode = "VAGUE_DESCRIPTION"
	ProblemSimilarName      ProblemCode = "SIMILAR_NAME"
	ProblemContradiction    ProblemCode = "CONTRADICTION"
	ProblemMarketing        ProblemCode = "MARKETING_WORDS"
)

// shortDescription is the length, in characters, below which a description is too short to say when to use a tool or document.
const shortDescription = 20

// Advise returns warnings about documents: descriptions that say nothing or contradict the schemas, names that models may confuse with
// other names in the documents or the catalog, schemas that do not do what they seem to do, and policy rules that fail on tools that their
// author did not think of.
func Advise(docs []Document, c Catalog) Problems {
	a := advisor{names: knownNames(docs, c), tools: map[string]bool{}}
	for i := range c.Tools {
		a.tools[c.Tools[i].Name] = true
	}
	for i := range docs {
		doc := &docs[i]
		a.say = func(key string, code ProblemCode, hint, format string, args ...any) {
			p := problemAt(doc, (*place)(nil).key(key), code, hint, format, args...)
			p.Severity = SeverityWarning
			a.problems = append(a.problems, p)
		}
		if advise := doc.row().advise; advise != nil {
			advise(&a, doc)
		}
		a.schemas(doc)
	}
	alike := similarNames(slices.Sorted(maps.Keys(a.tools)))
	for i := range docs {
		if x := docs[i].Execution(); x != nil && callable(x) && len(alike[x.Name]) > 0 {
			p := problemAt(&docs[i], (*place)(nil).key("name"), ProblemSimilarName, similarHint, "%s is easily taken for %s", x.Name, strings.Join(alike[x.Name], ", "))
			p.Severity = SeverityWarning
			a.problems = append(a.problems, p)
		}
	}
	a.problems.Sort()
	return a.problems
}

const similarHint = "choose a name that says how it differs"

// AdviseTools gives the same advice on the tools of a catalog, however they are implemented. The Document of a problem is the tool's name,
// its Line is 0, and its Path is description or name.
func AdviseTools(tools []jig.Tool) Problems {
	var a advisor
	names := make([]string, 0, len(tools))
	for i := range tools {
		names = append(names, tools[i].Name)
	}
	slices.Sort(names)
	alike := similarNames(slices.Compact(names))
	others := map[string]bool{}
	for _, name := range names {
		addNames(others, name)
	}
	for i := range tools {
		t := tools[i]
		a.say = func(key string, code ProblemCode, hint, format string, args ...any) {
			a.problems = append(a.problems, Problem{
				Document: t.Name, Path: key, Code: code, Severity: SeverityWarning, Message: fmt.Sprintf(format, args...), Hint: hint,
			})
		}
		a.description(t.Name, t.Description)
		a.contradictions(t, others)
		if len(alike[t.Name]) > 0 {
			a.say("name", ProblemSimilarName, similarHint, "%s is easily taken for %s", t.Name, strings.Join(alike[t.Name], ", "))
		}
	}
	a.problems.Sort()
	return a.problems
}

// advisor collects advice. say adds a problem about the document or tool that is being examined.
type advisor struct {
	problems Problems
	say      func(key string, code ProblemCode, hint, format string, args ...any)
	// names are the names that a description may mention without meaning a parameter. tools are those of all tools.
	names, tools map[string]bool
}

func (a *advisor) execution(doc *Document) {
	x := doc.Execution()
	if a.description(x.Name, x.Description) && callable(x) {
		a.purpose(x.Description)
	}
	a.contradictions(x.Tool, a.names)
	if callable(x) {
		a.tools[x.Name] = true
	}
}

func (a *advisor) agent(doc *Document) { a.description(doc.Name, doc.Agent().Description) }

func (a *advisor) skill(doc *Document) { a.description(doc.Name, doc.Skill().Description) }

func (a *advisor) entityType(doc *Document) { a.marketing(doc.EntityType().Description) }

func (a *advisor) bundle(doc *Document) { a.marketing(doc.Bundle().Description) }

func (a *advisor) policy(doc *Document) { a.problems = append(a.problems, adviseRules(doc)...) }

// knownNames returns the names of tools and documents.
func knownNames(docs []Document, c Catalog) map[string]bool {
	names := map[string]bool{}
	for i := range docs {
		addNames(names, docs[i].Name)
	}
	for i := range c.Tools {
		addNames(names, c.Tools[i].Name)
	}
	for _, name := range slices.Concat(c.Agents, c.Skills) {
		addNames(names, name)
	}
	return names
}

// addNames adds a name and its parts: a tool of the category cms may well mention `cms`.
func addNames(names map[string]bool, name string) {
	names[name] = true
	for part := range strings.SplitSeq(name, ".") {
		names[part] = true
	}
}

// description reports a description that does not say when to use the tool or document. It returns true if there is nothing to report.
func (a *advisor) description(name, text string) bool {
	const hint = "say when to use it and what it returns"
	text = strings.TrimSpace(text)
	a.marketing(text)
	said := meaningful(text)
	own := map[string]bool{}
	for _, word := range wordsOf(name) {
		own[singular(word)] = true
	}
	switch repeats := !slices.ContainsFunc(said, func(word string) bool { return !own[singular(word)] }); {
	case name == "": // reading has refused the document
	case text == "":
		a.say("description", ProblemVagueDescription, hint, "the description is missing")
	case strings.ContainsFunc(text, notLatin): // the word lists below are English
	case len(said) == 0:
		a.say("description", ProblemVagueDescription, hint, "the description %q says nothing in particular", clip.Runes(text, maxShown))
	case repeats:
		a.say("description", ProblemVagueDescription, hint, "the description %q only repeats the name", clip.Runes(text, maxShown))
	case utf8.RuneCountInString(text) < shortDescription:
		a.say("description", ProblemVagueDescription, hint, "the description %q has fewer than %d characters", text, shortDescription)
	default:
		return true
	}
	return false
}

// marketing reports words that praise a tool or document instead of saying what it does.
func (a *advisor) marketing(text string) {
	words := " " + strings.Join(wordsOf(text), " ") + " "
	var found []string
	for _, praise := range praises {
		if strings.Contains(words, " "+praise+" ") {
			found = append(found, strconv.Quote(praise))
		}
	}
	if len(found) > 0 {
		a.say("description", ProblemMarketing, "say what it does, returns and changes instead", "the description praises: %s", strings.Join(found, ", "))
	}
}

// praises are words of advertisements. Words that have another meaning, too, such as smart or premium, are not among them.
var praises = strings.Split(`amazing|awesome|best in class|blazing fast|blazingly|bleeding edge|breakthrough|cutting edge|effortless|effortlessly|enterprise grade|`+
	`fantastic|feature rich|game changer|game changing|groundbreaking|ground breaking|hassle free|incredible|incredibly|industry leading|innovative|`+
	`leading edge|lightning fast|magical|magically|market leading|mind blowing|must have|next gen|next generation|next level|one stop|outstanding|`+
	`powerful|revolutionary|revolutionize|revolutionizes|seamless|seamlessly|state of the art|stunning|supercharge|supercharged|supercharges|superior|`+
	`turbocharge|turbocharges|unbeatable|unmatched|unparalleled|unrivaled|unrivalled|world class`, "|")

// purpose reports the description of a tool that says neither what the tool returns nor when not to use it, so that a model can only guess.
func (a *advisor) purpose(text string) {
	if strings.ContainsFunc(text, notLatin) || givesBack.MatchString(text) || saysOutput.MatchString(text) || saysLimit.MatchString(text) {
		return
	}
	a.say("description", ProblemVagueDescription, "add what it returns, or when to use something else", "the description says neither what the tool returns nor when not to use it")
}

var (
	// saysOutput matches verbs whose object is what the tool returns.
	saysOutput = regexp.MustCompile(`(?i)\b(?:calculates?|checks?|compares?|computes?|converts?|counts?|describes?|downloads?|estimates?|explains?|extracts?|fetch(?:es)?|` +
		`finds?|gets?|identif(?:y|ies)|lists?|loads?|looks? up|measures?|ranks?|reads?|rates?|recommends?|reports?|responds?|retrieves?|says?|scores?|search(?:es)?|shows?|` +
		`suggests?|summari[sz]es?|sums? up|tells?|translates?|verif(?:y|ies))\b`)
	saysLimit = regexp.MustCompile(`(?i)\b(?:not|never|only|instead|unless|except|rather|avoid|cannot|nothing|no longer|must)\b|n't\b`)
)

func notLatin(r rune) bool { return unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) }

// emptyWords are words that say nothing about what a tool does, alone or combined.
var emptyWords = wordSet(`a an the and or of to for in on at by with from as is are be it its this that these those can will may
	i my your our you we some any all etc very just also when if
	do does doing done stuff thing things something anything everything helper helpers help helps helpful util utils utility utilities
	tool tools function functions method methods composition compositions agent agents prompt skill task tasks job jobs step steps
	misc miscellaneous various general generic useful main basic simple common default custom
	handle handles handling process processes processing perform performs run runs running execute executes executing work works use used uses
	operation operations action actions work data information info logic code item items result results input output
	test tests testing example examples sample todo tbd fixme wip placeholder description describe here lorem ipsum new foo bar baz`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

// meaningful returns the words of a description that are not empty words.
func meaningful(text string) []string {
	return slices.DeleteFunc(wordsOf(text), func(word string) bool { return emptyWords[word] })
}

var camelHump = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// wordsOf splits texts and names into lower-case words: cms.createPage is cms, create, page.
func wordsOf(text string) []string {
	text = strings.ToLower(camelHump.ReplaceAllString(text, "$1 $2"))
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// singular removes the ending of plural nouns and of verbs in the third person.
func singular(word string) string {
	switch {
	case len(word) > 4 && strings.HasSuffix(word, "ies"):
		return word[:len(word)-3] + "y"
	case len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss"):
		return strings.TrimSuffix(word[:len(word)-1], "e")
	}
	return strings.TrimSuffix(word, "e")
}

// similarNames finds names that differ in one letter, or only in case, plural or separators. It does not compare all pairs: it indexes each
// name under its plain form and under the name without each one of its letters, and compares only names that share an entry.
func similarNames(names []string) map[string][]string {
	shapes := map[string][]string{}
	alike := map[string][]string{}
	for _, name := range names {
		keys := map[string]bool{plain(name): true}
		lower := strings.ToLower(name)
		for i := range lower {
			keys[lower[:i]+lower[i+1:]] = true
		}
		keys[lower] = true
		met := map[string]bool{}
		for key := range keys {
			for _, other := range shapes[key] {
				if !met[other] && confusable(name, other) {
					alike[name] = append(alike[name], other)
					alike[other] = append(alike[other], name)
				}
				met[other] = true
			}
			shapes[key] = append(shapes[key], name)
		}
	}
	for _, list := range alike {
		slices.Sort(list)
	}
	return alike
}

// plain returns a name in lower case, without separators and plural endings.
func plain(name string) string {
	words := wordsOf(name)
	for i, word := range words {
		words[i] = singular(word)
	}
	return strings.Join(words, "")
}

// confusable reports whether two names are nearly the same. Two short words that differ in one letter, such as get and set, count as
// different words.
func confusable(a, b string) bool {
	if plain(a) == plain(b) {
		return true
	}
	lowA, lowB := strings.ToLower(a), strings.ToLower(b)
	if suggest.Distance(lowA, lowB, 2) != 1 {
		return false
	}
	wordsA, wordsB := wordsOf(a), wordsOf(b)
	if len(wordsA) != len(wordsB) {
		return true
	}
	const ownWord = 3
	for i := range wordsA {
		x, y := wordsA[i], wordsB[i]
		if x == y || len(x) != len(y) || len(x) > ownWord {
			continue
		}
		for j := range x {
			if x[j] != y[j] && (unicode.IsDigit(rune(x[j])) || unicode.IsDigit(rune(y[j]))) {
				return true
			}
		}
		return false
	}
	return true
}
