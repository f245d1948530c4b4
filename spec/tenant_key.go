package spec

import (
	"bytes"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
)

// Enrolled returns the key with its id, by default [token.KeyID], if the token proves that its sender holds the key and wants it to sign for its
// principal in the tenant. The error is NOT_PERMITTED, or INVALID_INPUT if the key is not valid.
func (k TenantKey) Enrolled(tenant, proof string) (TenantKey, error) {
	public, err := k.Public()
	if err != nil {
		return k, err
	}
	if k.ID == "" {
		k.ID = token.KeyID(k.Principal, public)
	}
	key := identity.Key{ID: k.ID, Algorithm: k.Algorithm, Principal: k.Principal, Material: public, RelyingParty: k.RelyingParty, Origins: k.Origins}
	return k, token.VerifyEnrolment(key, proof, tenant)
}

// AddTenantKey returns a tenant's document with one more key. Comments and the order of members stay; the layout may change. A document that has
// exactly this key is returned as it is. The error is CONFLICT if the document has another key of this id, and INVALID_INPUT if the key or the
// document is not valid.
func AddTenantKey(document string, body []byte, key TenantKey) ([]byte, error) {
	before, err := LoadTenant(document, body)
	if err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(before.Keys, func(k TenantKey) bool { return k.ID == key.ID }); at >= 0 {
		if reflect.DeepEqual(before.Keys[at], key) {
			return body, nil
		}
		return nil, jig.Errorf(jig.CodeConflict, "the tenant has another key with the id %s", key.ID).WithField("id").WithHint("choose another id")
	}
	var root yaml.Node
	if err := yaml.Load(plainJSON(body), &root); err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the document cannot be read: %w", err)
	}
	appendKey(root.Content[0], key)
	var out bytes.Buffer
	writer, err := yaml.NewDumper(&out, yaml.WithIndent(2))
	if err == nil {
		err = writer.Dump(&root)
	}
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		return nil, jig.Errorf(jig.CodeInternal, "writing the document: %w", err)
	}
	after, err := LoadTenant(document, out.Bytes())
	if err != nil {
		return nil, err
	}
	if before.Keys = append(before.Keys, key); !reflect.DeepEqual(before, after) {
		return nil, jig.Errorf(jig.CodeInternal, "adding the key would change other parts of the document").WithHint("add the key to the document by hand")
	}
	return out.Bytes(), nil
}

// appendKey adds a key to the list of keys of a document, which is a mapping.
func appendKey(document *yaml.Node, key TenantKey) {
	text := func(value string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	}
	entry := &yaml.Node{Kind: yaml.MappingNode}
	for _, member := range [][2]string{
		{"id", key.ID}, {"algorithm", key.Algorithm}, {"principal", key.Principal}, {"public_key", key.PublicKey}, {"rp_id", key.RelyingParty},
	} {
		if member[1] != "" {
			entry.Content = append(entry.Content, text(member[0]), text(member[1]))
		}
	}
	if len(key.Origins) > 0 {
		origins := &yaml.Node{Kind: yaml.SequenceNode}
		for _, origin := range key.Origins {
			origins.Content = append(origins.Content, text(origin))
		}
		entry.Content = append(entry.Content, text("origins"), origins)
	}
	for i := 0; i+1 < len(document.Content); i += 2 {
		if list := document.Content[i+1]; document.Content[i].Value == "keys" && list.Kind == yaml.SequenceNode {
			list.Content = append(list.Content, entry)
			return
		}
	}
	document.Content = append(document.Content, text("keys"), &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{entry}})
}
