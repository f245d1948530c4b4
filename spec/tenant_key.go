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
// principal in the tenant of the installation. The error is NOT_PERMITTED, or INVALID_INPUT if the key is not valid.
func (k TenantKey) Enrolled(installation, tenant, proof string) (TenantKey, error) {
	public, err := k.Public()
	if err != nil {
		return k, err
	}
	if k.ID == "" {
		k.ID = token.KeyID(k.Principal, public)
	}
	key := identity.Key{ID: k.ID, Algorithm: k.Algorithm, Principal: k.Principal, Material: public, RelyingParty: k.RelyingParty, Origins: k.Origins}
	return k, token.VerifyEnrolment(key, proof, installation, tenant)
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
	root, err := rootOf(body)
	if err != nil {
		return nil, err
	}
	appendKey(root.Content[0], key)
	before.Keys = append(before.Keys, key)
	return rewritten(document, root, before)
}

// rootOf returns the YAML tree of a document, with its comments.
func rootOf(body []byte) (*yaml.Node, error) {
	var root yaml.Node
	if err := yaml.Load(plainJSON(body), &root); err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the document cannot be read: %w", err)
	}
	return &root, nil
}

// rewritten writes a changed tree of a tenant's document, which must say what is wanted and nothing else.
func rewritten(document string, root *yaml.Node, want Tenant) ([]byte, error) {
	var out bytes.Buffer
	writer, err := yaml.NewDumper(&out, yaml.WithIndent(2))
	if err == nil {
		err = writer.Dump(root)
	}
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		return nil, jig.Errorf(jig.CodeInternal, "writing the document: %w", err)
	}
	got, err := LoadTenant(document, out.Bytes())
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(want, got) {
		return nil, jig.Errorf(jig.CodeInternal, "the change would alter other parts of the document").WithHint("change the document by hand")
	}
	return out.Bytes(), nil
}

// appendKey adds a key to the list of keys of a document, which is a mapping.
func appendKey(document *yaml.Node, key TenantKey) {
	entry := &yaml.Node{Kind: yaml.MappingNode}
	for _, member := range [][2]string{
		{"id", key.ID}, {"algorithm", key.Algorithm}, {"principal", key.Principal}, {"maker", key.Maker}, {"public_key", key.PublicKey}, {"rp_id", key.RelyingParty},
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
	appendTo(document, "keys", entry)
}

// text returns a node for a text.
func text(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

// listIn returns a list that is a member of a mapping; nil if there is none.
func listIn(mapping *yaml.Node, member string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if list := mapping.Content[i+1]; mapping.Content[i].Value == member && list.Kind == yaml.SequenceNode {
			return list
		}
	}
	return nil
}

// appendTo adds an entry to a list that is a member of a mapping, and the list if needed.
func appendTo(mapping *yaml.Node, member string, entry *yaml.Node) {
	if list := listIn(mapping, member); list != nil {
		list.Content = append(list.Content, entry)
		return
	}
	mapping.Content = append(mapping.Content, text(member), &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{entry}})
}
