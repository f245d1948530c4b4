package spec

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/tenancy"
)

// Limits of a tenant's document.
const (
	// MaxTenantBytes limits the size of the file.
	MaxTenantBytes  = 2 << 20
	maxTenantValues = 200_000
)

// SecretPrefix is the prefix of the environment variables that a tenant's document may make the worker read. No document can reach the
// worker's other variables.
const SecretPrefix = "JIG_SECRET_"

// SecretPrefixOf returns the prefix of the variables that one tenant's document may name: JIG_SECRET_<TENANT>__, with the tenant in upper
// case and "_" for "-", e.g. JIG_SECRET_ACME_WEST__ for acme-west. A tenant whose name would be ambiguous that way (because it contains "_"
// or "--", or ends with "-") is written in hexadecimal, after an extra "_". No tenant's prefix is the beginning of another tenant's prefix.
func SecretPrefixOf(tenant string) string {
	if strings.Contains(tenant, "_") || strings.Contains(tenant, "--") || strings.HasSuffix(tenant, "-") {
		return SecretPrefix + "_" + strings.ToUpper(hex.EncodeToString([]byte(tenant))) + "__"
	}
	return SecretPrefix + strings.ToUpper(strings.ReplaceAll(tenant, "-", "_")) + "__"
}

// Tenant is a document of kind tenant. It says what proof decisions need, who the tenant's people are, and who is notified.
type Tenant struct {
	Kind        string          `json:"kind" spec:"required" jsonschema:"tenant."`
	Name        string          `json:"name" spec:"required,form=tenant" hint:"add the tenant's id, e.g. name: acme" jsonschema:"The tenant's id."`
	Description string          `json:"description,omitempty" spec:"max=4096" jsonschema:"A description for people."`
	Approvals   TenantApprovals `json:"approvals,omitzero" jsonschema:"How decisions must be proved, and who may settle calls whose outcome is unknown."`
	Starts      TenantStarts    `json:"starts,omitzero" jsonschema:"How starts, messages and reads must be proved."`
	Keys        []TenantKey     `json:"keys,omitempty" spec:"max=1000" jsonschema:"The keys that verify tokens."`
	People      []TenantPerson  `json:"people,omitempty" spec:"max=10000" jsonschema:"People and programs, with their groups and permissions. A principal that is not listed has neither."`
	Roles       []tenantRole    `json:"roles,omitempty" spec:"max=200" jsonschema:"Who has which role, and roles of the tenant's own."`
	LoginGroups []loginGroup    `json:"login_groups,omitempty" spec:"max=2000" jsonschema:"Groups of identity providers that count as groups of the tenant."`
	Owners      *TenantOwners   `json:"owners,omitempty" jsonschema:"Who approves the calls of operator tools (catalog.*, bundle.*, grants.*, tenants.*); by default anybody but the requester."`
	Grants      TenantGrants    `json:"grants,omitzero" jsonschema:"Limits of standing approvals."`
	Webhooks    []TenantWebhook `json:"webhooks,omitempty" spec:"max=20" jsonschema:"Endpoints that are notified of events about approvals."`
	Messages    []TenantMessage `json:"messages,omitempty" spec:"max=20" jsonschema:"Mailboxes and chats that are told about approvals in words."`
}

// TenantApprovals are the settings for a tenant's decisions.
type TenantApprovals struct {
	// Proof is the weakest proof with which a decision counts. If neither it nor Signals is given, the worker's setting applies.
	Proof jig.Proof `json:"proof,omitempty" spec:"form=proof" jsonschema:"The weakest proof with which a decision counts: claimed (a name), vouched (a server or a portal authenticated the person), key (signed with the person's own key) or passkey; default: the worker's setting."`
	// Signals is the older way to say it.
	Signals tenancy.SignalMode `json:"signals,omitempty" spec:"form=signals" jsonschema:"Instead of proof: trusted (claimed), signed (key, where keys of portals count, too) or off (key, and no raw signals)."`
	// Reconcilers lists who may settle a call with an unknown outcome. If nil, those who could have approved the call may.
	Reconcilers *Approvers `json:"reconcilers,omitempty" jsonschema:"Who may settle calls whose outcome is unknown; by default the people who could have approved the call."`
}

// TenantStarts are the settings for what starts and steers a tenant's sessions.
type TenantStarts struct {
	// Proof is claimed or vouched. If empty, the worker's setting applies.
	Proof jig.Proof `json:"proof,omitempty" spec:"form=starts" jsonschema:"The weakest proof with which sessions start, messages count and clients read: claimed, or vouched (a server authenticated the principal); default: the worker's setting."`
}

// TenantOwners says who approves changes to the tenant itself. If it has no people, groups or permission, anybody may, and the quorum still
// applies.
type TenantOwners struct {
	People     []string `json:"people,omitempty" spec:"min=1,max=100,form=label" jsonschema:"Principals who are owners."`
	Groups     []string `json:"groups,omitempty" spec:"min=1,max=100,form=label" jsonschema:"Groups whose members are owners."`
	Permission string   `json:"permission,omitempty" spec:"min=1,max=128" jsonschema:"Principals with this permission are owners."`
	Quorum     int      `json:"quorum,omitempty" spec:"min=1,max=20" jsonschema:"How many distinct owners must approve; default 1."`
}

// Approvers returns who may decide as an owner: everybody, if the document names nobody.
func (o TenantOwners) Approvers() jig.Approvers {
	return jig.Approvers{People: o.People, Groups: o.Groups, Permission: o.Permission}
}

// TenantKey verifies tokens.
type TenantKey struct {
	ID        string `json:"id" spec:"required,form=key" hint:"add e.g. id: ana-2026" jsonschema:"The key's id, unique in the document; tokens contain it (kid)."`
	Algorithm string `json:"algorithm" spec:"required,form=algorithm" hint:"add algorithm: ed25519, hmac-sha256 or webauthn" jsonschema:"ed25519, hmac-sha256 or webauthn (a passkey)."`
	// Principal is the only principal that the key speaks for. If empty, it speaks for everybody.
	Principal string `json:"principal,omitempty" spec:"form=label" jsonschema:"The only principal whose decisions the key may sign; by default it may sign for everybody (a portal's key)."`
	// Maker is who made the credential with which the key was enrolled, for its principal. Signatures of the key count as the maker's, too.
	Maker     string `json:"maker,omitempty" spec:"form=label" jsonschema:"Who made the credential with which the principal enrolled the key, if that was somebody else: decisions with the key count as theirs, too."`
	PublicKey string `json:"public_key,omitempty" spec:"max=256" jsonschema:"In base64. For ed25519: the 32 bytes of the public key; for webauthn: the key as the browser's getPublicKey() returns it (SubjectPublicKeyInfo, ES256 or EdDSA)."`
	// RelyingParty and Origins say where a passkey may be used.
	RelyingParty string   `json:"rp_id,omitempty" spec:"min=1,max=253" jsonschema:"For webauthn: the id of the relying party for which the passkey was made, e.g. jig.example.com."`
	Origins      []string `json:"origins,omitempty" spec:"min=1,max=10" jsonschema:"For webauthn: the addresses at which the passkey may be used, e.g. https://jig.example.com."`
	// Disabled means that signatures of the key do not count.
	Disabled  bool   `json:"disabled,omitempty" jsonschema:"true refuses signatures of the key, within a second, those of earlier decisions included."`
	SecretEnv string `json:"secret_env,omitempty" spec:"form=secret" jsonschema:"For hmac-sha256: the worker's environment variable with the secret of at least 32 bytes; its name starts with JIG_SECRET_ and the tenant, e.g. JIG_SECRET_ACME__."`
}

// Public returns the bytes of the public key of an Ed25519 key or a passkey. The error is INVALID_INPUT.
func (k TenantKey) Public() ([]byte, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(k.PublicKey)
	if k.Algorithm == identity.AlgorithmWebAuthn {
		if err == nil {
			_, err = token.PasskeyPublic(raw)
		}
		if err != nil {
			return nil, jig.Errorf(jig.CodeInvalidInput, "key %s is not a passkey's public key for ES256 or EdDSA", k.ID).WithField("public_key").
				WithHint("give what getPublicKey() of the browser returns, in base64")
		}
		return raw, nil
	}
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return nil, jig.Errorf(jig.CodeInvalidInput, "key %s is not %d bytes in base64", k.ID, ed25519.PublicKeySize).WithField("public_key").
			WithHint("give the raw public key, 44 characters that end with =")
	}
	return raw, nil
}

// TenantPerson is a person or a program that the tenant knows.
type TenantPerson struct {
	ID          string   `json:"id" spec:"required,form=label" hint:"add e.g. id: ana" jsonschema:"The principal's id, unique in the document."`
	Groups      []string `json:"groups,omitempty" spec:"max=1000,form=label" jsonschema:"The principal's groups."`
	Permissions []string `json:"permissions,omitempty" spec:"max=1000,form=label" jsonschema:"The principal's permissions; * means all."`
	// Logins are how identity providers name the person. The person's principal is ID, however they sign in.
	Logins []login `json:"logins,omitempty" spec:"max=20" jsonschema:"How identity providers name the person: whoever signs in as one of them acts as this principal."`
	// Disabled means that the person must not act: workers and servers refuse what they ask for.
	Disabled bool `json:"disabled,omitempty" jsonschema:"true refuses everything that the person asks for, within a second."`
}

// login is a person as an identity provider names it.
type login struct {
	Issuer  string `json:"issuer" spec:"required,form=issuer" hint:"add e.g. issuer: https://login.example.com" jsonschema:"The issuer of the tokens."`
	Subject string `json:"subject" spec:"required,min=1,max=255" hint:"add the subject, e.g. subject: 248289761001" jsonschema:"The subject of the tokens, which the issuer gives to nobody else."`
}

// loginGroup makes a group of an identity provider count as a group of the tenant.
type loginGroup struct {
	Issuer string `json:"issuer" spec:"required,form=issuer" hint:"add e.g. issuer: https://login.example.com" jsonschema:"The issuer of the tokens."`
	Value  string `json:"value" spec:"required,min=1,max=255" hint:"add e.g. value: finance-team" jsonschema:"The value in the groups claim of the tokens."`
	Group  string `json:"group" spec:"required,form=label" hint:"add e.g. group: finance" jsonschema:"The tenant's group to which holders of such a token belong while it is valid."`
}

// tenantRole says who has a role. A role that does not ship with jig also says what it permits.
type tenantRole struct {
	Name        string   `json:"name" spec:"required,form=slug" hint:"add e.g. name: reviewer" jsonschema:"The role, unique in the document: reader, reviewer, author, operator, owner, or a name of your own."`
	Permissions []string `json:"permissions,omitempty" spec:"min=1,max=1000,form=label" jsonschema:"The permissions of a role of your own; * means all."`
	People      []string `json:"people,omitempty" spec:"max=10000,form=label" jsonschema:"Principals who have the role."`
	Groups      []string `json:"groups,omitempty" spec:"max=1000,form=label" jsonschema:"Groups whose members have the role."`
}

// AllRoles returns the document's roles with the permissions of each.
func (t Tenant) AllRoles() []tenancy.Role {
	var roles []tenancy.Role
	for _, r := range t.Roles {
		permissions := r.Permissions
		if shipped, ok := tenancy.ShippedRole(r.Name); ok {
			permissions = shipped
		}
		roles = append(roles, tenancy.Role{Name: r.Name, Permissions: permissions, People: r.People, Groups: r.Groups})
	}
	return roles
}

// Principals returns the people of the document, and those whom only a role names, with their groups and all their permissions.
func (t Tenant) Principals() []jig.Principal {
	var people []jig.Principal
	roles, known := t.AllRoles(), map[string]bool{}
	for _, p := range t.People {
		known[p.ID] = true
		people = append(people, tenancy.WithRoles(jig.Principal{ID: p.ID, Groups: p.Groups, Permissions: p.Permissions}, roles))
	}
	for _, r := range t.Roles {
		for _, id := range r.People {
			if !known[id] {
				known[id] = true
				people = append(people, tenancy.WithRoles(jig.Principal{ID: id}, roles))
			}
		}
	}
	return people
}

// TenantGrants limits standing approvals. Zero values mean the defaults of [approval.GrantCeiling].
type TenantGrants struct {
	Off     bool     `json:"off,omitempty" jsonschema:"true forbids standing approvals."`
	MaxUses int      `json:"max_uses,omitempty" spec:"min=1,max=1000000" jsonschema:"The maximum number of calls that one may approve; default 1000."`
	MaxAge  Duration `json:"max_age,omitempty" spec:"min=1m,max=365d" jsonschema:"How long one may be valid at most, e.g. 7d; default 30d."`
}

// TenantWebhook is an endpoint that receives notices about approvals.
type TenantWebhook struct {
	URL       string           `json:"url" spec:"required,max=2048" hint:"add e.g. url: https://hooks.example.com/jig" jsonschema:"Where notifications are posted: https, or http on this machine."`
	SecretEnv string           `json:"secret_env" spec:"required,form=secret" hint:"add e.g. secret_env: JIG_SECRET_ACME__WEBHOOK" jsonschema:"The worker's environment variable with the signing secret of at least 24 bytes; its name starts with JIG_SECRET_ and the tenant, e.g. JIG_SECRET_ACME__."`
	Events    []jig.NoticeKind `json:"events,omitempty" spec:"min=1,max=20,form=notice" jsonschema:"The kinds of notifications that it gets; default: all."`
}

// TenantMessage names mailboxes, or a chat, that are told about approvals in words.
type TenantMessage struct {
	Mail    []string         `json:"mail,omitempty" spec:"min=1,max=20" jsonschema:"Mail addresses, which get one mail together. The worker needs JIG_SMTP_URL."`
	ChatEnv string           `json:"chat_env,omitempty" spec:"form=secret" jsonschema:"The worker's environment variable with the address of an incoming webhook, such as Slack's; its name starts with JIG_SECRET_ and the tenant, e.g. JIG_SECRET_ACME__."`
	Events  []jig.NoticeKind `json:"events,omitempty" spec:"min=1,max=20,form=notice" jsonschema:"The kinds of notifications that are told; default: all."`
}

// LoadTenant reads a document of kind tenant, in YAML or JSON. document is the file name for error messages. The error is a [Problems] with
// everything that is wrong.
func LoadTenant(document string, body []byte) (Tenant, error) {
	return loadAs[Tenant](KindTenant, document, body)
}

func (d *decoder) tenant(t Tenant, _ source) Tenant {
	d.checkApprovers("approvals.reconcilers")
	d.checkOwners(t)
	d.checkApprovals(t)
	for i, key := range t.Keys {
		d.checkKey(indexPath("keys", i), key)
		d.checkSecret(indexPath("keys", i)+".secret_env", t.Name, key.SecretEnv)
	}
	for i, hook := range t.Webhooks {
		d.checkWebhook(indexPath("webhooks", i)+".url", hook.URL)
		d.checkSecret(indexPath("webhooks", i)+".secret_env", t.Name, hook.SecretEnv)
	}
	for i, message := range t.Messages {
		d.checkMessage(indexPath("messages", i), t.Name, message)
	}
	d.unique("keys", "id", len(t.Keys), func(i int) string { return t.Keys[i].ID })
	d.unique("people", "id", len(t.People), func(i int) string { return t.People[i].ID })
	d.unique("webhooks", "url", len(t.Webhooks), func(i int) string { return t.Webhooks[i].URL })
	d.unique("roles", "name", len(t.Roles), func(i int) string { return t.Roles[i].Name })
	d.checkRoles(t)
	d.checkLogins(t)
	d.checkLookAlikes(t)
	return t
}

// checkApprovals refuses two settings that say the same, and warns if decisions need a signature that nobody can give.
func (d *decoder) checkApprovals(t Tenant) {
	signals := t.Approvals.Signals == tenancy.SignalsSigned || t.Approvals.Signals == tenancy.SignalsOff
	switch {
	case t.Approvals.Signals != "" && t.Approvals.Proof != "":
		d.at("approvals.signals", ProblemBadShape, "leave signals out", "proof and signals say the same")
	case !d.has("keys") && signals:
		d.add(d.warning("approvals.signals", "add keys",
			fmt.Sprintf("with %s every decision needs a token, but without keys nobody can have one", t.Approvals.Signals)))
	}
}

// checkRoles refuses other permissions for a role that ships with jig, and a role that permits nothing.
func (d *decoder) checkRoles(t Tenant) {
	for i, r := range t.Roles {
		path := indexPath("roles", i)
		_, shipped := tenancy.ShippedRole(r.Name)
		switch has := d.has(path + ".permissions"); {
		case shipped && has:
			d.at(path+".permissions", ProblemBadShape, "remove it, or choose another name", "the role %s ships with jig, with permissions of its own", r.Name)
		case !shipped && !has && r.Name != "":
			d.at(path+".permissions", ProblemMissingKey, "add e.g. permissions: [api.read]", "the role %s does not ship with jig, and permits nothing", r.Name)
		}
	}
}

// checkLogins refuses a login that belongs to two people.
func (d *decoder) checkLogins(t Tenant) {
	owner := map[login]string{}
	for i, p := range t.People {
		for n, l := range p.Logins {
			if other, taken := owner[l]; taken {
				d.at(indexPath(indexPath("people", i)+".logins", n), ProblemBadValue, "give each login to one person", "this login belongs to %s, too", other)
			}
			owner[l] = p.ID
		}
	}
}

// checkOwners refuses owners who could never reach the quorum, because then nobody could ever approve new owners. It warns if the quorum
// cannot be reached without the owner who asks.
func (d *decoder) checkOwners(t Tenant) {
	n := d.places["owners"]
	if t.Owners == nil || n == nil || n.kind != kindMap {
		return
	}
	if len(n.entries) == 0 {
		d.at("owners", ProblemBadShape, "give people, groups, a permission or a quorum", "this does not say who the owners are")
		return
	}
	owners, known := map[string]bool{}, map[string]bool{}
	for _, id := range t.Owners.People {
		owners[id], known[id] = true, true
	}
	for _, p := range t.Principals() {
		known[p.ID] = true
		if t.Owners.Approvers().Include(p) {
			owners[p.ID] = true
		}
	}
	switch need := max(1, t.Owners.Quorum); {
	case len(owners) < need:
		d.at("owners", ProblemBadValue, "name more people, or list the members of the groups under people",
			"%d of the owners must approve, but the document names only %d", need, len(owners))
	case len(known) > 1 && len(owners) == need:
		d.add(d.warning("owners", "name one more owner",
			"the requester may not approve, so too few owners remain if one of them makes the request"))
	}
}

// warning returns a warning about the existing value at a path.
func (d *decoder) warning(path, hint, message string) Problem {
	p := Problem{Path: path, Code: ProblemBadShape, Severity: SeverityWarning, Message: message, Hint: hint}
	if n := d.places[path]; n != nil {
		p.Line, p.Column = n.line, n.column
	}
	return p
}

// checkKey checks that a key has what its algorithm needs and nothing else.
func (d *decoder) checkKey(path string, key TenantKey) {
	needs, hint, not := "public_key", "add e.g. public_key: 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "secret_env"
	switch key.Algorithm {
	case identity.AlgorithmEd25519:
	case identity.AlgorithmWebAuthn:
		hint = "add e.g. public_key: MFkw…"
		d.checkPasskey(path)
	case identity.AlgorithmHMAC:
		needs, hint, not = not, "add e.g. secret_env: JIG_SECRET_ACME__PORTAL", needs
	default: // reported when the value was read
		return
	}
	if !d.has(path + "." + needs) {
		d.at(path+"."+needs, ProblemMissingKey, hint, "a key of %s needs %s", key.Algorithm, jig.Known(needs))
	}
	if d.has(path + "." + not) {
		d.at(path+"."+not, ProblemBadShape, "remove it", "a key of %s has no %s", key.Algorithm, jig.Known(not))
		return
	}
	if n := d.places[path+".public_key"]; n != nil && n.kind == kindString {
		if _, err := key.Public(); err != nil {
			e := jig.AsError(err)
			what := fmt.Sprintf("%d bytes in base64", ed25519.PublicKeySize)
			if key.Algorithm == identity.AlgorithmWebAuthn {
				what = "a passkey's public key for ES256 or EdDSA"
			}
			d.at(path+".public_key", ProblemBadValue, e.Hint, "this is not %s", jig.Known(what))
		}
	}
}

// checkPasskey checks that a passkey says whose it is and where it may be used.
func (d *decoder) checkPasskey(path string) {
	for _, member := range [][2]string{{"principal", "ana"}, {"rp_id", "jig.example.com"}, {"origins", "[https://jig.example.com]"}} {
		if !d.has(path + "." + member[0]) {
			d.at(path+"."+member[0], ProblemMissingKey, "add e.g. "+member[0]+": "+member[1], "a passkey needs %s", jig.Known(member[0]))
		}
	}
}

// checkSecret refuses the name of a secret that does not belong to the tenant. The decoder has already reported malformed names.
func (d *decoder) checkSecret(path, tenant, name string) {
	if n := d.places[path]; n == nil || !secretPattern.MatchString(name) || jig.CheckTenant(tenant) != nil {
		return
	}
	own := SecretPrefixOf(tenant)
	if rest, ok := strings.CutPrefix(name, own); !ok || rest == "" {
		d.at(path, ProblemBadName, "name a variable that starts with "+own+", e.g. "+own+"PORTAL", "the names of the secrets of tenant %s start with %s", tenant, own)
	}
}

// checkWebhook refuses a URL that messages cannot be posted to, and one that contains a user or password, has a fragment, or sends messages
// over a network without encryption.
func (d *decoder) checkWebhook(path, address string) {
	if n := d.places[path]; n == nil || n.kind != kindString {
		return
	}
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Hostname() == "":
		d.at(path, ProblemBadValue, "write e.g. https://hooks.example.com/jig", "this is not a URL that messages can be posted to")
	case u.User != nil:
		d.at(path, ProblemBadValue, "leave out the user: messages are signed with secret_env", "the URL contains a user or a password")
	case tenancy.Webhook{URL: address}.Readable():
		d.at(path, ProblemBadValue, "write https://; http is only for this machine: localhost, 127.0.0.1, [::1]", "messages to an http URL can be read in transit")
	case u.Fragment != "":
		d.at(path, ProblemBadValue, "remove what follows #", "a webhook URL has no fragment")
	}
}

// mailPattern matches the mail addresses that a document may name: no names, no comments, no quotes.
var mailPattern = regexp.MustCompile(`^[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*$`)

// checkMessage refuses a message that goes nowhere or to two kinds of places, and what is not a mail address.
func (d *decoder) checkMessage(path, tenant string, m TenantMessage) {
	if n := d.places[path]; n == nil || n.kind != kindMap {
		return
	}
	if d.has(path+".mail") == d.has(path+".chat_env") {
		d.at(path, ProblemBadShape, "give mail or chat_env; a further entry can have the other", "a message goes to mailboxes or to a chat")
	}
	if d.has(path + ".chat_env") {
		d.checkSecret(path+".chat_env", tenant, m.ChatEnv)
	}
	for i, address := range m.Mail {
		if at := indexPath(path+".mail", i); d.places[at] != nil && d.places[at].kind == kindString && !mailPattern.MatchString(address) {
			d.at(at, ProblemBadValue, "write e.g. ana@example.com", "this is not a plain mail address")
		}
	}
}
