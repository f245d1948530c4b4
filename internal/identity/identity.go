// Package identity holds the types that say who acted: the keys of tenants, the claims of tokens with the evidence that is stored, the lineage of
// credentials, and the rules for names of principals. The packages below it make and check what proves an identity: credential for API keys, logins and
// embed tokens, token for signed decisions, vouch for the statements of servers, and openid for identity providers.
package identity

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/visible"
)

// Algorithms of [Key].
const (
	AlgorithmEd25519 = "ed25519"
	AlgorithmHMAC    = "hmac-sha256"
	// AlgorithmWebAuthn is a passkey.
	AlgorithmWebAuthn = "webauthn"
)

// Key verifies tokens.
type Key struct {
	// ID is the id by which tokens name the key (kid).
	ID string `json:"id"`
	// Algorithm is ed25519, hmac-sha256 or webauthn.
	Algorithm string `json:"algorithm"`
	// Principal is the only principal for whom the key may sign; empty means that it may sign for everybody (e.g. the key of a portal).
	Principal string `json:"principal,omitempty"`
	// Maker is who made the credential with which the key was enrolled, for its principal; see [jig.Principal].
	Maker string `json:"maker,omitempty"`
	// Material is the 32 bytes of an Ed25519 public key, an HMAC secret of at least 32 bytes, or the public key of a passkey in DER form.
	Material []byte `json:"-"`
	// RelyingParty is the id of the relying party for which a passkey was made, e.g. jig.example.com. Origins are the addresses at which it may
	// be used, e.g. https://jig.example.com.
	RelyingParty string   `json:"rp_id,omitempty"`
	Origins      []string `json:"origins,omitempty"`
}

// Claim is the statement that a token proves: a principal takes one action on one subject.
type Claim struct {
	// Installation is the id of the installation, in claims that are not about a call; the digest of a call covers it.
	Installation string `json:"installation,omitempty"`

	Tenant    string `json:"tenant"`
	Principal string `json:"principal"`
	// Action is approve, deny, delegate, answer, reconcile, pause, resume, revoke or enrol.
	Action string `json:"action"`
	// SessionID and Call name the call that is decided. Subject names the target of any other action: a grant's id, tool:<name>, session:<id>,
	// tenant, key:<id>.
	SessionID string `json:"session_id,omitempty"`
	Call      string `json:"call,omitempty"`
	Subject   string `json:"subject,omitempty"`
	// Digest is the digest of the call as it was shown.
	Digest string `json:"digest,omitempty"`
	// Content is the SHA-256, in hex, of the decision's content in RFC 8785 form (changed input, a value, a delegate, a grant); empty when the
	// decision has none of these. Package token computes it.
	Content string `json:"content,omitempty"`
}

// Evidence is the proof of a claim; the zero value means that nothing was proved.
type Evidence struct {
	Key   string    `json:"key,omitempty"`
	Token string    `json:"token,omitempty"`
	Until time.Time `json:"until,omitzero"`
	// Maker is the principal who made the credential; see jig.Principal.
	Maker string `json:"maker,omitempty"`
	// Request identifies the request that carried the token. A token is valid once, and again only for a retry of the same request.
	Request string `json:"-"`
}

// KeyID returns the id of the key, or of the server that vouched; empty if there is no evidence.
func (e *Evidence) KeyID() string {
	if e == nil {
		return ""
	}
	return e.Key
}

// CheckName returns an error unless people can see all of a principal's name: it is in the Unicode form NFC, without invisible and control characters
// and without spaces at its ends. The error is INVALID_INPUT with the field principal.
func CheckName(name string) error {
	what := ""
	switch hidden := false; {
	case !utf8.ValidString(name):
		what = "is not valid UTF-8"
	case name != strings.TrimFunc(name, unicode.IsSpace):
		what = "begins or ends with a space"
	case !norm.NFC.IsNormalString(name):
		what = "is not in the Unicode form NFC"
	default:
		visible.Map(name, func(r rune, invisible bool) rune {
			hidden = hidden || invisible || unicode.IsControl(r) || unicode.IsSpace(r) && r != ' '
			return r
		})
		if !hidden {
			return nil
		}
		what = "has a character that people cannot see"
	}
	return jig.Errorf(jig.CodeInvalidInput, "the name of the principal %s", jig.Known(what)).WithField("principal").
		WithHint("type the name again, with plain letters, digits and punctuation")
}

// Resembles reports whether people may take two names for each other, because their letters look alike or differ only in case. The same name does not
// resemble itself.
func Resembles(a, b string) bool { return a != b && Skeleton(a) == Skeleton(b) }

// alike holds characters of other scripts, and digits, beside the Latin letters for which people may take them, in lower case.
const alike = "аaеeоoрpсcуyхxіiјjѕsԁdһhԛqԝwкkмmтtвbнhαaβbεeζzηnιiκkνvοoρpτtυuχxγyօoոnսuհhցgıiøođdħh"

// looks maps the characters of alike.
func looks(r rune) rune {
	switch r {
	case 'l', '1', '|', 'ӏ', 'ł':
		return 'i'
	case '0':
		return 'o'
	case '\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2212', '_':
		return '-'
	}
	if r < utf8.RuneSelf {
		return r
	}
	pair := []rune(alike)
	for i := 0; i+1 < len(pair); i += 2 {
		if pair[i] == r {
			return pair[i+1]
		}
	}
	return r
}

// Skeleton returns a form of a name that names have in common which look alike: compatibility characters as their ordinary ones, no case, no marks and
// nothing invisible, and letters as Latin ones.
func Skeleton(name string) string {
	folded := cases.Fold().String(norm.NFKD.String(name))
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Mn, unicode.Cf, unicode.Cc, unicode.Z) {
			return -1
		}
		return looks(r)
	}, norm.NFKD.String(folded))
}
