package spec

import (
	"bytes"
	"encoding/json"
	"path"
	"regexp"
	"strings"

	"github.com/jig-run/jig"
)

// Kind is the kind of thing that a document describes, e.g. an agent or a policy.
type Kind string

// The kinds of documents. A new kind also needs a reader in [Load] and a type in [SchemaOf].
const (
	KindAgent       Kind = "agent"
	KindComposition Kind = "composition"
	KindPrompt      Kind = "prompt"
	KindTask        Kind = "task"
	KindSkill       Kind = "skill"
	KindPolicy      Kind = "policy"
	KindTenant      Kind = "tenant"
	KindBudget      Kind = "budget"
	KindRateLimit   Kind = "rate_limit"
	KindEntityType  Kind = "entity_type"
	KindThinTool    Kind = jig.ImplementationThin
	KindBundle      Kind = "bundle"
)

// Kinds lists the kinds that this version reads.
func Kinds() []Kind {
	return []Kind{KindAgent, KindComposition, KindPrompt, KindTask, KindSkill, KindPolicy, KindTenant, KindBudget, KindRateLimit, KindEntityType, KindThinTool, KindBundle}
}

// IsExecution reports whether documents of the kind are execution specs, which can be called like tools.
func (k Kind) IsExecution() bool {
	return k == KindComposition || k == KindPrompt || k == KindTask || k == KindThinTool
}

var (
	kindLine = regexp.MustCompile(`(?m)^kind:[ \t]*["']?([a-z_]+)["']?[ \t]*(?:#.*)?\r?$`)
	kindFlow = regexp.MustCompile(`[{,]\s*["']?kind["']?\s*:\s*["']?([a-z_]+)["']?\s*[,}]`)
	kindWord = regexp.MustCompile(`^[a-z_]+$`)
)

// KindOf returns a document's kind: the value of its `kind:` key. Without that key, a file SKILL.md is a skill, and any other Markdown file
// with front matter is an agent. KindOf returns an empty kind for a file that is not a document.
func KindOf(document string, body []byte) Kind {
	markdown := strings.EqualFold(path.Ext(document), ".md")
	head := bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	switch {
	case path.Base(document) == skillFile:
		return KindSkill
	case markdown && !isFence(head):
		return ""
	case markdown:
		d := newDecoder(document)
		head, _, _ = d.frontMatter(body)
	case bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")):
		return flowKind(head)
	}
	if m := kindLine.FindSubmatch(head); m != nil {
		return Kind(m[1])
	}
	if markdown {
		return KindAgent
	}
	return ""
}

// flowKind returns the kind of a document in braces: JSON, or YAML's flow style.
func flowKind(body []byte) Kind {
	var head struct {
		Kind any `json:"kind"`
	}
	if json.Unmarshal(body, &head) == nil {
		if kind, ok := head.Kind.(string); ok && kindWord.MatchString(kind) {
			return Kind(kind)
		}
		return ""
	}
	if m := kindFlow.FindSubmatch(body); m != nil {
		return Kind(m[1])
	}
	return ""
}
