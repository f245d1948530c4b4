package spec

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/tenancy"
)

// DisablePerson returns a tenant's document in which a person is disabled or enabled. It keeps comments and the order of members, but may change the
// layout. Disabling a person who is not in the document adds them.
func DisablePerson(document string, body []byte, id string, disabled bool) ([]byte, error) {
	t, err := LoadTenant(document, body)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(t.People, func(p TenantPerson) bool { return p.ID == id })
	switch {
	case at < 0 && !disabled:
		return nil, jig.Errorf(jig.CodeNotFound, "the tenant's document does not list the person %s", id).WithField("person").WithHint("`jig people list` shows them")
	case at < 0:
		t.People = append(t.People, TenantPerson{ID: id, Disabled: true})
	case t.People[at].Disabled == disabled:
		return body, nil
	default:
		t.People = slices.Clone(t.People)
		t.People[at].Disabled = disabled
	}
	return disable(document, body, "people", id, disabled, t)
}

// DisableKey returns a tenant's document in which a key is disabled or enabled; see [DisablePerson]. A key that is not in the document is NOT_FOUND.
func DisableKey(document string, body []byte, id string, disabled bool) ([]byte, error) {
	t, err := LoadTenant(document, body)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(t.Keys, func(k TenantKey) bool { return k.ID == id })
	if at < 0 {
		return nil, jig.Errorf(jig.CodeNotFound, "the tenant's document does not list the key %s", id).WithField("key").WithHint("`jig people list` shows them")
	}
	if t.Keys[at].Disabled == disabled {
		return body, nil
	}
	t.Keys[at].Disabled = disabled
	return disable(document, body, "keys", id, disabled, t)
}

// disable sets or removes the member disabled of an entry in a list of the document, and checks that nothing else has changed.
func disable(document string, body []byte, list, id string, disabled bool, want Tenant) ([]byte, error) {
	root, err := rootOf(body)
	if err != nil {
		return nil, err
	}
	entry := entryOf(listIn(root.Content[0], list), id)
	if entry == nil {
		entry = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{text("id"), text(id)}}
		appendTo(root.Content[0], list, entry)
	}
	for i := 0; i+1 < len(entry.Content); i += 2 {
		if entry.Content[i].Value == "disabled" {
			entry.Content = slices.Delete(entry.Content, i, i+2)
			break
		}
	}
	if disabled {
		entry.Content = append(entry.Content, text("disabled"), &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
	}
	return rewritten(document, root, want)
}

// entryOf returns the entry of a list with an id; nil if there is none.
func entryOf(list *yaml.Node, id string) *yaml.Node {
	if list == nil {
		return nil
	}
	for _, entry := range list.Content {
		for i := 0; entry.Kind == yaml.MappingNode && i+1 < len(entry.Content); i += 2 {
			if entry.Content[i].Value == "id" && entry.Content[i+1].Value == id {
				return entry
			}
		}
	}
	return nil
}

// checkLookAlikes refuses a principal's name that people may take for another one in the document. Somebody who is only disabled may have such a name.
func (d *decoder) checkLookAlikes(t Tenant) {
	first := map[string]string{}
	check := func(path, name string) {
		form := identity.Skeleton(name)
		if other, taken := first[form]; taken && other != name {
			d.at(path, ProblemBadName, "choose a name that nobody takes for another", "%q looks like %q, which the document names, too", name, other)
			return
		}
		first[form] = name
	}
	all := func(path string, names []string) {
		for i, name := range names {
			check(indexPath(path, i), name)
		}
	}
	for i, p := range t.People {
		if only := (TenantPerson{ID: p.ID, Disabled: true}); !reflect.DeepEqual(p, only) {
			check(indexPath("people", i)+".id", p.ID)
		}
	}
	for i, r := range t.Roles {
		all(indexPath("roles", i)+".people", r.People)
	}
	for i, k := range t.Keys {
		if k.Principal != "" {
			check(indexPath("keys", i)+".principal", k.Principal)
		}
	}
	if t.Owners != nil {
		all("owners.people", t.Owners.People)
	}
	if t.Approvals.Reconcilers != nil {
		all("approvals.reconcilers.people", t.Approvals.Reconcilers.People)
	}
}

// Directory lists all people, groups and keys in the document, sorted by name.
func (t Tenant) Directory() tenancy.Directory {
	d := tenancy.Directory{People: []tenancy.DirectoryPerson{}, Groups: []tenancy.DirectoryGroup{}, Keys: []tenancy.DirectoryKey{}}
	settings := tenancy.Settings{Roles: t.AllRoles()}
	at := map[string]int{}
	for _, p := range t.Principals() {
		at[p.ID] = len(d.People)
		d.People = append(d.People, tenancy.DirectoryPerson{
			Principal: p.ID, Groups: sorted(p.Groups), Roles: sorted(settings.RolesOf(p)), Permissions: sorted(p.Permissions), Logins: []tenancy.DirectoryLogin{},
			Keys: []tenancy.DirectoryKey{},
		})
	}
	for _, p := range t.People {
		person := &d.People[at[p.ID]]
		person.Disabled = p.Disabled
		for _, l := range p.Logins {
			person.Logins = append(person.Logins, tenancy.DirectoryLogin{Issuer: l.Issuer, Subject: l.Subject})
		}
	}
	for _, k := range t.Keys {
		key := tenancy.DirectoryKey{ID: k.ID, Algorithm: k.Algorithm, Disabled: k.Disabled}
		if k.Principal == "" {
			d.Keys = append(d.Keys, key)
			continue
		}
		i, known := at[k.Principal]
		if !known { // a key may be there before its person
			i = len(d.People)
			at[k.Principal] = i
			d.People = append(d.People, tenancy.DirectoryPerson{
				Principal: k.Principal, Groups: []string{}, Roles: []string{}, Permissions: []string{}, Logins: []tenancy.DirectoryLogin{},
			})
		}
		d.People[i].Keys = append(d.People[i].Keys, key)
	}
	slices.SortFunc(d.People, func(a, b tenancy.DirectoryPerson) int { return cmp.Compare(a.Principal, b.Principal) })
	d.Groups = t.groups(d.People)
	return d
}

// groups lists the groups that people, roles and logins name.
func (t Tenant) groups(people []tenancy.DirectoryPerson) []tenancy.DirectoryGroup {
	members, roles := map[string][]string{}, map[string][]string{}
	names := map[string]bool{}
	for _, p := range people {
		for _, g := range p.Groups {
			names[g] = true
			members[g] = append(members[g], p.Principal)
		}
	}
	for _, r := range t.Roles {
		for _, g := range r.Groups {
			names[g] = true
			roles[g] = append(roles[g], r.Name)
		}
	}
	for _, g := range t.LoginGroups {
		names[g.Group] = true
	}
	list := []tenancy.DirectoryGroup{}
	for name := range names {
		list = append(list, tenancy.DirectoryGroup{Name: name, Members: sorted(members[name]), Roles: sorted(roles[name])})
	}
	slices.SortFunc(list, func(a, b tenancy.DirectoryGroup) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// sorted returns a list without repetitions that is not null in JSON.
func sorted(list []string) []string {
	out := append([]string{}, list...)
	slices.Sort(out)
	return slices.Compact(out)
}

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
