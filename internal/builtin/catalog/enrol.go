package catalog

import (
	"context"
	"fmt"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
)

// EnrolTool is the name of the tool that enrols keys.
const EnrolTool = toolname.EnrolKey

// Enrolment is a key that is to sign for the principal of the call.
type Enrolment struct {
	ID           string   `json:"id,omitempty"        jsonschema:"the key's id, which tokens contain (kid); default: the principal and a part of the public key's hash" maxLength:"64"`
	Algorithm    string   `json:"algorithm"           jsonschema:"ed25519, or webauthn for a passkey"                                                                       enum:"ed25519,webauthn"`
	PublicKey    string   `json:"public_key"          jsonschema:"in base64: the 32 bytes of an ed25519 key, or what getPublicKey() of the browser returns"                  maxLength:"256"     minLength:"1"`
	RelyingParty string   `json:"rp_id,omitempty"     jsonschema:"for a passkey: the id of the relying party for which it was made"                                          maxLength:"253"`
	Origins      []string `json:"origins,omitempty"   jsonschema:"for a passkey: the addresses at which it may be used"                                                      maxItems:"10"`
	Token        string   `json:"token"               jsonschema:"a token, signed with the key, for the action enrol and the subject key:<id>"                               maxLength:"4096"    minLength:"1"`
}

// Enrolled is the output of tenants.enrol_key.
type Enrolled struct {
	ID        string `json:"id"`
	Principal string `json:"principal"`
	// Version is the version of the tenant's document that has the key.
	Version string `json:"version"`
}

// Summary implements tools.Summarizer.
func (e Enrolled) Summary() string { return fmt.Sprintf("%s signs for %s", e.ID, e.Principal) }

// enrolment returns the changed document of the tenant, and the key.
func (o Options) enrolment(ctx context.Context, inv jig.Invocation, in Enrolment) (Files, spec.TenantKey, error) {
	if !inv.Principal.Proof.AtLeast(jig.ProofVouched) {
		return Files{}, spec.TenantKey{}, jig.Errorf(jig.CodeNotPermitted, "nobody has proved that %s asks for this", inv.Principal.ID).
			WithHint("enrol the key through a server, which knows who you are; or have an owner add it to the tenant's document")
	}
	key, err := spec.TenantKey{
		ID: in.ID, Algorithm: in.Algorithm, Principal: inv.Principal.ID, Maker: inv.Principal.Maker, PublicKey: in.PublicKey, RelyingParty: in.RelyingParty, Origins: in.Origins,
	}.Enrolled(o.Store.Installation(), inv.Tenant, in.Token)
	if err != nil {
		return Files{}, key, err
	}
	files, err := o.changed(ctx, inv.Tenant, func(document string, body []byte) ([]byte, error) { return spec.AddTenantKey(document, body, key) })
	return files, key, err
}

// changed returns the tenant's document after a change, to be stored only in place of the version that was changed.
func (o Options) changed(ctx context.Context, tenant string, change func(document string, body []byte) ([]byte, error)) (Files, error) {
	own := bundle.Key{Kind: spec.KindTenant.Stored(), Name: tenant}
	snapshot, err := o.Store.DocumentSnapshot(ctx, tenant, "", []bundle.Key{own})
	if err != nil {
		return Files{}, err
	}
	current, has := snapshot.Current[own]
	if !has {
		return Files{}, jig.Errorf(jig.CodeNotFound, "the tenant has no document, so it knows no people and no keys").WithHint("register a document of kind tenant: jig catalog add FILE")
	}
	body, err := o.Store.DocumentAt(ctx, tenant, own.Kind, own.Name, current.Version)
	if err != nil {
		return Files{}, err
	}
	document := tenant + ".yaml"
	body, err = change(document, body)
	replaces := &Named{Kind: string(spec.KindTenant), Name: tenant, Version: current.Version}
	return Files{Documents: []File{{Path: document, Body: string(body), Replaces: replaces}}}, err
}

// previewEnrol shows what changes in the tenant's document.
func (o Options) previewEnrol(ctx context.Context, inv jig.Invocation, in Enrolment) (jig.Preview, error) {
	files, key, err := o.enrolment(ctx, inv, in)
	if err != nil {
		return jig.Preview{}, err
	}
	p, err := o.preview(ctx, inv, files)
	p.Title = fmt.Sprintf("Lets the key %s sign for %s: %s", key.ID, key.Principal, p.Title)
	return p, err
}

func (o Options) enrol(ctx context.Context, inv jig.Invocation, in Enrolment) (Enrolled, error) {
	files, key, err := o.enrolment(ctx, inv, in)
	if err != nil {
		return Enrolled{}, err
	}
	stored, err := o.put(ctx, inv, files)
	if err != nil {
		return Enrolled{}, err
	}
	return Enrolled{ID: key.ID, Principal: key.Principal, Version: stored.Documents[0].Version}, nil
}

// DisableTool is the name of the tool that disables and enables people and keys.
const DisableTool = toolname.SetDisabled

// Disabling names a person or a key.
type Disabling struct {
	Person   string `json:"person,omitempty" jsonschema:"the principal to disable or to enable"                               maxLength:"128"`
	Key      string `json:"key,omitempty"    jsonschema:"instead of a person: the id of the key to disable or to enable"      maxLength:"64"`
	Disabled bool   `json:"disabled"         jsonschema:"true disables the person or the key, false enables them again"`
}

// Disabled is the output of tenants.set_disabled.
type Disabled struct {
	Person   string `json:"person,omitempty"`
	Key      string `json:"key,omitempty"`
	Disabled bool   `json:"disabled"`
	// Version is the new version of the tenant's document.
	Version string `json:"version"`
}

// Summary implements tools.Summarizer.
func (d Disabled) Summary() string {
	if d.Disabled {
		return subject(d.Person, d.Key) + " is disabled"
	}
	return subject(d.Person, d.Key) + " is enabled"
}

func subject(person, key string) string {
	if key != "" {
		return "the key " + key
	}
	return person
}

// disabling returns the changed document of the tenant.
func (o Options) disabling(ctx context.Context, inv jig.Invocation, in Disabling) (Files, error) {
	if (in.Person == "") == (in.Key == "") {
		return Files{}, jig.Errorf(jig.CodeInvalidInput, "name either a person or a key").WithField("person")
	}
	return o.changed(ctx, inv.Tenant, func(document string, body []byte) ([]byte, error) {
		if in.Key != "" {
			return spec.DisableKey(document, body, in.Key, in.Disabled)
		}
		return spec.DisablePerson(document, body, in.Person, in.Disabled)
	})
}

// previewDisable shows what changes in the tenant's document.
func (o Options) previewDisable(ctx context.Context, inv jig.Invocation, in Disabling) (jig.Preview, error) {
	files, err := o.disabling(ctx, inv, in)
	if err != nil {
		return jig.Preview{}, err
	}
	p, err := o.preview(ctx, inv, files)
	does := "Enables"
	if in.Disabled {
		does = "Disables"
	}
	p.Title = fmt.Sprintf("%s %s: %s", does, subject(in.Person, in.Key), p.Title)
	return p, err
}

func (o Options) setDisabled(ctx context.Context, inv jig.Invocation, in Disabling) (Disabled, error) {
	files, err := o.disabling(ctx, inv, in)
	if err != nil {
		return Disabled{}, err
	}
	stored, err := o.put(ctx, inv, files)
	if err != nil {
		return Disabled{}, err
	}
	return Disabled{Person: in.Person, Key: in.Key, Disabled: in.Disabled, Version: stored.Documents[0].Version}, nil
}
