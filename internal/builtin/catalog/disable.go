package catalog

import (
	"context"
	"fmt"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
)

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
