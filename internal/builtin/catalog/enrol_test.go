package catalog_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/catalog"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/spec"
)

// enrolment returns a key for a principal and what enrols it in the tenant acme. id is the key's id; empty means the default.
func enrolment(t *testing.T, id, principal string) (catalog.Enrolment, token.Signer) {
	t.Helper()
	private, public, err := token.NewKey()
	require.NoError(t, err)
	signer, err := token.ParsePrivateKey(private, id, principal)
	require.NoError(t, err)
	return catalog.Enrolment{ID: id, Algorithm: "ed25519", PublicKey: public, Token: enrols(t, signer, "ins_1", "acme", signer.ID(), principal)}, signer
}

// enrols returns the token that shows that somebody holds a key.
func enrols(t *testing.T, signer token.Signer, installation, tenant, id, principal string) string {
	t.Helper()
	claim, err := token.ForSubject(installation, tenant, token.ActionEnrol, "key:"+id, "")
	require.NoError(t, err)
	claim.Principal = principal
	text, err := token.Sign(claim, signer, time.Now().Add(-72*time.Hour), token.DefaultLifetime) // the approval took three days
	require.NoError(t, err)
	return text
}

func TestEnrol_AddsTheKeyToTheDocument(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	require.True(t, put(t, s, catalog.File{Path: "acme.yaml", Body: "kind: tenant\nname: acme\npeople:\n  - {id: ana} # finance\n  - {id: flo}\n"}).Success)
	kit := s.kit(t)
	kit.Invocation.Principal = jig.Principal{ID: "ana", Proof: jig.ProofVouched}
	in, signer := enrolment(t, "", "ana")

	shown := kit.Preview(catalog.EnrolTool, in)
	require.Contains(t, shown.Title, "Lets the key "+signer.ID()+" sign for ana")
	require.Contains(t, shown.Changes[0], "new key "+signer.ID()+", which signs for ana")
	kit.Invocation.Precondition = shown.Precondition
	var out catalog.Enrolled
	kit.Succeed(catalog.EnrolTool, in, &out)
	require.Equal(t, "ana", out.Principal)
	now := s.has.Current[bundle.Key{Kind: "tenant", Name: "acme"}]
	require.Equal(t, now.Version, out.Version)
	doc, err := spec.LoadTenant("acme.yaml", []byte(s.bodies[now.DocumentVersion]))
	require.NoError(t, err)
	require.Equal(t, []spec.TenantKey{{ID: signer.ID(), Algorithm: "ed25519", Principal: "ana", PublicKey: in.PublicKey}}, doc.Keys)
	require.Contains(t, s.bodies[now.DocumentVersion], "# finance")

	other, _ := enrolment(t, "ana-2", "ana")
	kit.Invocation.Precondition = shown.Precondition
	require.Equal(t, bundle.ReasonPrecondition, kit.Fail(catalog.EnrolTool, other).Reason, "the document is not the one that was shown")
	kit.Invocation.Precondition = ""
	kit.Succeed(catalog.EnrolTool, other, &out)
	require.Equal(t, "ana-2", out.ID)
}

// A key that somebody enrolled with a credential that somebody else made keeps that maker.
func TestEnrol_KeepsTheMaker(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	require.True(t, put(t, s, catalog.File{Path: "acme.yaml", Body: "kind: tenant\nname: acme\npeople: [{id: ben}, {id: carol}]\n"}).Success)
	kit := s.kit(t)
	kit.Invocation.Principal = jig.Principal{ID: "frank", Proof: jig.ProofVouched, Maker: "ben"}
	in, _ := enrolment(t, "", "frank")
	var out catalog.Enrolled
	kit.Succeed(catalog.EnrolTool, in, &out)
	now := s.has.Current[bundle.Key{Kind: "tenant", Name: "acme"}]
	doc, err := spec.LoadTenant("acme.yaml", []byte(s.bodies[now.DocumentVersion]))
	require.NoError(t, err)
	require.Equal(t, "ben", doc.Keys[0].Maker)
}

func TestEnrol_RefusesKeysThatNobodyProved(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	require.True(t, put(t, s, catalog.File{Path: "acme.yaml", Body: "kind: tenant\nname: acme\npeople: [{id: ana}, {id: flo}]\n"}).Success)
	before := s.has.Current[bundle.Key{Kind: "tenant", Name: "acme"}].Version
	mine, signer := enrolment(t, "mine", "ana")
	theirs, _ := enrolment(t, "mine", "ana")
	hers, _ := enrolment(t, "mine", "flo")
	for name, row := range map[string]struct {
		proof  jig.Proof
		change func(in *catalog.Enrolment)
		code   jig.Code
		says   string
	}{
		"nobody knows who asks":            {jig.ProofClaimed, nil, jig.CodeNotPermitted, "through a server"},
		"no proof at all":                  {"", nil, jig.CodeNotPermitted, "through a server"},
		"another key's token":              {jig.ProofVouched, func(in *catalog.Enrolment) { in.Token = theirs.Token }, jig.CodeNotPermitted, ""},
		"somebody else's key":              {jig.ProofVouched, func(in *catalog.Enrolment) { *in = hers }, jig.CodeNotPermitted, ""},
		"a token for another tenant":       {jig.ProofVouched, func(in *catalog.Enrolment) { in.Token = enrols(t, signer, "ins_1", "zeta", "mine", "ana") }, jig.CodeNotPermitted, ""},
		"a token for another installation": {jig.ProofVouched, func(in *catalog.Enrolment) { in.Token = enrols(t, signer, "ins_2", "acme", "mine", "ana") }, jig.CodeNotPermitted, "another installation"},
		"a token for another id":           {jig.ProofVouched, func(in *catalog.Enrolment) { in.Token = enrols(t, signer, "ins_1", "acme", "yours", "ana") }, jig.CodeNotPermitted, ""},
		"no token":                         {jig.ProofVouched, func(in *catalog.Enrolment) { in.Token = "none" }, jig.CodeNotPermitted, ""},
		"half a key":                       {jig.ProofVouched, func(in *catalog.Enrolment) { in.PublicKey = base64.StdEncoding.EncodeToString([]byte("half")) }, jig.CodeInvalidInput, "32 bytes"},
	} {
		in := mine
		if row.change != nil {
			row.change(&in)
		}
		kit := s.kit(t)
		kit.Invocation.Principal = jig.Principal{ID: "ana", Proof: row.proof}
		failed := kit.Fail(catalog.EnrolTool, in)
		require.Equal(t, row.code, failed.Code, "%s: %v", name, failed)
		require.Contains(t, failed.Message+failed.Hint, row.says, name)
		require.Equal(t, before, s.has.Current[bundle.Key{Kind: "tenant", Name: "acme"}].Version, name)
	}
	kit := newFakeStore().kit(t)
	kit.Invocation.Principal = jig.Principal{ID: "ana", Proof: jig.ProofVouched}
	require.Contains(t, kit.Fail(catalog.EnrolTool, mine).Message, "has no document")
}
