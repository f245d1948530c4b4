package spec

import (
	"bytes"
	"path"
	"regexp"
	"strings"
)

// Kind is what a document describes.
type Kind string

// The kinds of documents. More join here, each with its reader in Load and its type in SchemaOf.
const (
	KindAgent Kind = "agent"
)

// Kinds lists the kinds that this version reads.
func Kinds() []Kind { return []Kind{KindAgent} }

var kindLine = regexp.MustCompile(`(?m)^kind:[ \t]*"?([a-z_]+)"?[ \t]*(?:#.*)?\r?$`)

// KindOf finds a document's kind: what its `kind:` line says; else, of a Markdown file with front matter, an agent. It is
// empty for a file that is no document.
func KindOf(document string, body []byte) Kind {
	markdown := strings.EqualFold(path.Ext(document), ".md")
	head := body
	if markdown {
		if !isFence(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))) {
			return ""
		}
		d := newDecoder(document)
		head, _, _ = d.frontMatter(body)
	}
	if m := kindLine.FindSubmatch(head); m != nil {
		return Kind(m[1])
	}
	if markdown {
		return KindAgent
	}
	return ""
}
