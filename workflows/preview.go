package workflows

import (
	"fmt"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/visible"
)

// maxPreview limits the changes and the Markdown of a preview in the current details, in bytes.
const maxPreview = 6 << 10

// describePreview shows what a call will change, before anything else about the call. The tool's text stands in code spans and a code block, so
// that it can neither imitate the lines around it nor load an image.
func describePreview(b *strings.Builder, p *jig.Preview) {
	if p == nil {
		return
	}
	if p.Missing != "" {
		fmt.Fprintf(b, "**No preview** of what the call will change: %s\n\n", verbatim(p.Missing))
		return
	}
	fmt.Fprintf(b, "**Preview:** %s\n\n", verbatim(p.Title))
	text := strings.Join(p.Changes, "\n\n")
	if p.Markdown != "" {
		text = strings.Trim(text+"\n\n"+p.Markdown, "\n")
	}
	if text != "" {
		shown := jig.Cut(text, maxPreview)
		b.WriteString(codeBlock(shown))
		if len(shown) < len(text) {
			b.WriteString("(cut here; `jig approvals show` prints all of it)\n")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "The approval is bound to this preview: %s\n\n", verbatim(p.Binding()))
}

// codeBlock formats text as a code block that no line of the text can close.
func codeBlock(text string) string {
	text = visible.Map(text, func(r rune, hidden bool) rune {
		if r == '\n' {
			return r
		}
		return withoutControls(r, hidden)
	})
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "text\n" + text + "\n" + fence + "\n"
}
