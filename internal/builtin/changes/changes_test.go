package changes_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/builtin/changes"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/spec"
)

func load(t *testing.T, body string) spec.Document {
	t.Helper()
	doc, problems := spec.Load("doc.yaml", []byte(body))
	require.Empty(t, problems.Errors(), body)
	return doc
}

// put returns what the preview points out when a document replaces another.
func put(t *testing.T, before, after string) (looser []string, title string) {
	t.Helper()
	var list changes.List
	var old []byte
	if before != "" {
		old = []byte(before)
	}
	list.Put(load(t, after), old)
	p := list.Preview("Registers documents")
	for _, c := range p.Changes {
		if why, ok := strings.CutPrefix(c, "LOOSER: "); ok {
			looser = append(looser, why)
		}
	}
	return looser, p.Title
}

const strict = `kind: policy
name: shop
rules:
  - {name: big, when: "input.amount > 100", verdict: ask, quorum: 2, not_requester: true, approvers: {groups: [finance]}, proof: key, expires: 2d, on_expiry: fail}
  - {name: never, when: "tool.name == 'shop.purge'", verdict: deny}
`

func TestPut_PointsOutALooserPolicy(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ old, replacement, want string }{
		"a milder verdict":    {"verdict: deny", "verdict: ask", "policy shop: rule never says ask; it said deny"},
		"a smaller quorum":    {"quorum: 2", "quorum: 1", "policy shop: rule big needs 1 approval; it needed 2"},
		"the requester":       {"not_requester: true", "not_requester: false", "policy shop: rule big lets the requester decide"},
		"other approvers":     {"groups: [finance]", "groups: [finance, staff]", "policy shop: rule big lets group staff decide"},
		"any approver":        {", approvers: {groups: [finance]}", "", "policy shop: rule big lets anybody decide"},
		"weaker proof":        {"proof: key", "proof: vouched", "policy shop: rule big demands vouched of decisions; it was key"},
		"no proof":            {", proof: key", "", "policy shop: rule big demands no proof of its own of decisions; it was key"},
		"a rule that is gone": {"  - {name: never, when: \"tool.name == 'shop.purge'\", verdict: deny}\n", "", "policy shop: rule never (deny) is gone"},
		"a rule that lifts": {
			"rules:\n", "rules:\n  - {name: own, when: \"true\", verdict: ask, not_requester: false}\n", "policy shop: new rule own lets the requester decide",
		},
		"a rule that runs": {"rules:\n", "rules:\n  - {name: free, when: \"true\", verdict: run}\n", "policy shop: new rule free lets calls run when true"},
	} {
		looser, title := put(t, strict, strings.Replace(strict, row.old, row.replacement, 1))
		require.Equal(t, []string{row.want}, looser, name)
		require.Contains(t, title, "LOOSER in 1 way", name)
	}
	looser, title := put(t, strict, strings.Replace(strict, "verdict: ask, quorum: 2", "verdict: ask, quorum: 3", 1))
	require.Empty(t, looser, "a stricter policy")
	require.Equal(t, "Registers documents: 1 changed", title)
	looser, _ = put(t, "", strict)
	require.Empty(t, looser, "a new policy that only asks and denies")
}

const settings = `kind: tenant
name: acme
approvals: {signals: signed}
people:
  - {id: ana, groups: [finance], permissions: [shop.read]}
keys:
  - {id: ana-1, algorithm: ed25519, principal: ana, public_key: 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=}
`

func TestPut_PointsOutNewKeysAndWiderPermissions(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ old, replacement, want string }{
		"less proof":       {"signals: signed", "signals: trusted", "tenant acme: decisions need less proof: signals are trusted; before: signals are signed"},
		"an endpoint":      {"people:\n", "webhooks:\n  - {url: \"https://hooks.example.com/a\", secret_env: JIG_SECRET_ACME__HOOK}\npeople:\n", "tenant acme: a new endpoint is told about approvals: https://hooks.example.com/a"},
		"longer grants":    {"people:\n", "grants: {max_uses: 5000}\npeople:\n", "tenant acme: standing approvals cover up to 5000 calls; it was 1000"},
		"a new key":        {"keys:\n", "keys:\n  - {id: portal, algorithm: ed25519, public_key: 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=}\n", "tenant acme: new key portal, which signs for everybody"},
		"another owner":    {"principal: ana, ", "principal: bob, ", "tenant acme: changed key ana-1, which signs for bob"},
		"a new group":      {"[finance]", "[finance, owners]", "tenant acme: ana joins owners"},
		"a new permission": {"[shop.read]", "[shop.read, '*']", "tenant acme: ana gets the permissions *"},
	} {
		looser, _ := put(t, settings, strings.Replace(settings, row.old, row.replacement, 1))
		require.Equal(t, []string{row.want}, looser, name)
	}
	looser, _ := put(t, settings, strings.Replace(settings, "signals: signed", "signals: off", 1))
	require.Empty(t, looser)
	team := strings.Replace(settings, "people:\n", "people:\n  - {id: bob, groups: [finance], disabled: true}\n", 1)
	looser, _ = put(t, team, settings)
	require.Equal(t, []string{
		"tenant acme: bob is no longer listed, and so no longer disabled",
		"tenant acme: operator tools are approved by ana, also when ana asks; it was anybody but the requester",
	}, looser)
	two := strings.Replace(settings, "people:\n", "people:\n  - {id: bob}\n", 1)
	looser, _ = put(t, two, strings.Replace(two, "{id: bob}", "{id: bob, disabled: true}", 1))
	require.Equal(t, []string{"tenant acme: operator tools are approved by ana, also when ana asks; it was anybody but the requester"}, looser)
	looser, _ = put(t, "", settings)
	require.Len(t, looser, 3, "a new document: a key, a group, a permission")
}

// A change of which nobody can say in general whether it guards less is pointed out apart.
func TestPut_PointsOutWhatAPersonHasToJudge(t *testing.T) {
	t.Parallel()
	vouched := strings.Replace(settings, "signals: signed", "proof: vouched", 1)
	for name, row := range map[string]struct{ document, old, replacement, want string }{
		"another condition":  {strict, "> 100", "> 1000", "policy shop: rule big (ask) holds for other calls: when input.amount > 1000; it was input.amount > 100"},
		"a longer wait":      {strict, "expires: 2d", "expires: 5d", "policy shop: rule big lets approvals wait for 5d; it was 2d"},
		"the agent's wait":   {strict, ", expires: 2d", "", "policy shop: rule big lets approvals wait as long as the agent says; it was 2d"},
		"a milder end":       {strict, ", on_expiry: fail", "", "policy shop: rule big lets the session go on when nobody decides in time"},
		"owners":             {settings, "people:\n", "owners: {people: [ana]}\npeople:\n  - {id: bob}\n", "tenant acme: operator tools are approved by ana (1 approval), but not the requester; it was ana, also when ana asks"},
		"reconcilers":        {settings, "signals: signed", "signals: signed, reconcilers: {people: [ana]}", "tenant acme: other people may settle calls whose outcome is unknown"},
		"the worker's proof": {vouched, "approvals: {proof: vouched}\n", "", "tenant acme: decisions may need less proof: signals are the worker's setting; before: proof is vouched"},
	} {
		var list changes.List
		list.Put(load(t, strings.Replace(row.document, row.old, row.replacement, 1)), []byte(row.document))
		p := list.Preview("Registers documents")
		require.Equal(t, "Registers documents: 1 changed; 1 change to CHECK", p.Title, name)
		require.Equal(t, "CHECK: "+row.want, p.Changes[0], name)
	}
}

func TestPut_OverADocumentThatCannotBeRead(t *testing.T) {
	t.Parallel()
	var list changes.List
	list.Put(load(t, strict), []byte("kind: policy\nname: shop\nrulez: []\n"))
	p := list.Preview("Registers documents")
	require.Equal(t, "CHECK: policy shop: its current version cannot be read, so nobody can tell what it guards", p.Changes[0])
	require.Contains(t, strings.Join(p.Changes, "\n"), "-rulez: []")
}

// A text of several lines, or one with another kind of line break, cannot pass for other lines of the preview.
func TestPut_ShowsTextsOnOneLine(t *testing.T) {
	t.Parallel()
	login := "logins: [{issuer: \"https://login.example.com\", subject: \"x\\nunchanged: tenant acme\"}], "
	looser, _ := put(t, settings, strings.Replace(settings, "groups: [finance]", login+"groups: [finance]", 1))
	require.Equal(t, []string{"tenant acme: who signs in as x unchanged: tenant acme at https://login.example.com acts as ana"}, looser)
	const agent = "---\nname: tidier\ndescription: Tidies.\nmodel: openai/x\n---\nTidy.\n"
	doc, problems := spec.Load("tidier.md", []byte(agent+"a\u2028unchanged: agent tidier\u2029LOOSER: nothing\n"))
	require.Empty(t, problems.Errors())
	var list changes.List
	list.Put(doc, []byte(agent))
	shown, err := preview.Clean(list.Preview("Registers documents"))
	require.NoError(t, err)
	require.Contains(t, strings.Join(shown.Changes, "\n"), "\n+a\ufffdunchanged: agent tidier\ufffdLOOSER: nothing")
}

// A tool without its preview, and one that rules no longer find, are pointed out.
func TestPut_PointsOutWhatPeopleAndRulesNoLongerSee(t *testing.T) {
	t.Parallel()
	const tool = "kind: composition\nname: acme.pay\ndescription: Pays.\npermission: write\nlabels: {}\ntags: [money]\npreview: {title: Pays}\nsteps:\n  - {set: {a: 1}}\n"
	var list changes.List
	list.Put(load(t, strings.NewReplacer("tags: [money]\n", "", "preview: {title: Pays}\n", "").Replace(tool)), []byte(tool))
	require.Equal(t, []string{
		"CHECK: composition acme.pay: rules that look for the tags money no longer find it",
		"CHECK: composition acme.pay: people no longer see what its calls will change",
	}, list.Preview("Registers documents").Changes[:2])
}

// An expression of several lines cannot pass for other lines of the preview.
func TestPut_ShowsExpressionsOnOneLine(t *testing.T) {
	t.Parallel()
	looser, _ := put(t, strict, strings.Replace(strict, "rules:\n", "rules:\n  - name: free\n    verdict: run\n    when: |\n      true\n\n      // unchanged: policy shop\n      || false\n", 1))
	require.Equal(t, []string{"policy shop: new rule free lets calls run when true ⏎ ⏎ // unchanged: policy shop ⏎ || false"}, looser)
	padded := "rules:\n  - {name: free, verdict: run, when: \"false" + strings.Repeat(" ", 400) + "|| true\"}\n"
	looser, _ = put(t, strict, strings.Replace(strict, "rules:\n", padded, 1))
	require.Equal(t, []string{"policy shop: new rule free lets calls run when false || true"}, looser, "blanks cannot push a part of it out of sight")
}

func TestPut_PointsOutHigherLimits(t *testing.T) {
	t.Parallel()
	const spending = "kind: budget\nname: spending\nlimits:\n  - {name: day, level: tenant, window: day, tokens: 1000}\n"
	const apis = "kind: rate_limit\nname: apis\nlimits:\n  - {name: all, rate: 10, per: 1m, concurrency: 2}\n"
	const agent = "---\nname: tidier\ndescription: Tidies.\nmodel: script/x\ntools: [file.read]\nscript:\n  rules: [{answer: done}]\n---\nTidy.\n"
	const tool = "kind: composition\nname: acme.pay\ndescription: Pays.\npermission: write\napproval: always_ask\nlabels: {sends: true}\nsteps:\n  - {set: {a: 1}}\n"
	for name, row := range map[string]struct{ document, old, replacement, want string }{
		"tokens":       {spending, "tokens: 1000", "tokens: 2000", "budget spending: limit day allows 2000 tokens; it was 1000"},
		"a limit":      {spending, "name: day,", "name: other,", "budget spending: limit day is gone"},
		"a rate":       {apis, "per: 1m", "per: 30s", "rate_limit apis: limit all lets calls begin more often"},
		"concurrency":  {apis, ", concurrency: 2", "", "rate_limit apis: limit all allows any amount of calls at the same time; it was 2"},
		"an agent":     {agent, "[file.read]", "[file.read, 'file.*']", "agent tidier: it may use file.*"},
		"a risk":       {tool, "permission: write", "permission: write\nrisk: safe", "composition acme.pay: its risk is safe; it was moderate"},
		"a permission": {tool, "permission: write", "permission: draft", "composition acme.pay: it is declared as draft; it was write"},
		"an approval":  {tool, "approval: always_ask", "approval: auto", "composition acme.pay: it no longer always asks"},
		"labels":       {tool, "labels: {sends: true}", "labels: {}", "composition acme.pay: it is no longer declared to send data away"},
	} {
		var list changes.List
		file := "doc.yaml"
		if strings.HasPrefix(row.document, "---") {
			file = "doc.md"
		}
		doc, problems := spec.Load(file, []byte(strings.Replace(row.document, row.old, row.replacement, 1)))
		require.Empty(t, problems.Errors(), name)
		list.Put(doc, []byte(row.document))
		require.Equal(t, "LOOSER: "+row.want, list.Preview("Registers documents").Changes[0], name)
	}
}

func TestPreview_ShowsEachDocument(t *testing.T) {
	t.Parallel()
	var list changes.List
	list.Put(load(t, strict), []byte(strict))
	list.Put(load(t, strings.Replace(settings, "signed", "off", 1)), []byte(settings))
	list.Put(load(t, "kind: policy\nname: extra\nrules:\n  - {name: a, when: \"true\", verdict: deny}\n"), nil)
	list.Remove("policy", "old", []byte(strict))
	p := list.Preview("Installs shop 2")
	require.Equal(t, "Installs shop 2: 1 added, 1 changed, 1 removed, 1 unchanged; LOOSER in 2 ways", p.Title)
	require.Equal(t, []string{
		"LOOSER: policy old: rule big (ask) is gone", "LOOSER: policy old: rule never (deny) is gone",
		"added: policy extra", "changed: tenant acme", "removed: policy old", "unchanged: policy shop",
	}, p.Changes[:6])
	all := strings.Join(p.Changes[6:], "\n")
	require.Contains(t, all, "added: policy extra\n+kind: policy\n+name: extra")
	require.Contains(t, all, "-approvals: {signals: signed}\n+approvals: {signals: off}")
	require.Contains(t, all, "removed: policy old\n-kind: policy")
	require.Equal(t, "Puts: nothing changes", (&changes.List{}).Preview("Puts").Title)
}

// A skill is stored as JSON on one line, and compared as people wrote it.
func TestPut_ShowsSkillsAsText(t *testing.T) {
	t.Parallel()
	skill := func(text string) spec.Document {
		doc, problems := spec.Load("tidy/SKILL.md", []byte("---\nname: tidy\ndescription: How to tidy.\n---\nOne.\n"+text+"\n"))
		require.Empty(t, problems.Errors())
		return doc
	}
	var list changes.List
	list.Put(skill("Three."), skill("Two.").Body)
	require.Contains(t, strings.Join(list.Preview("Registers documents").Changes, "\n"), " One.\n-Two.\n+Three.")
	list = changes.List{}
	list.Remove("skill", "tidy", skill("Two.").Body)
	require.Contains(t, strings.Join(list.Preview("Removes a bundle").Changes, "\n"), "-One.\n-Two.")
}

// The heading of a single document's diff is enough. Several documents are listed before their diffs.
func TestPreview_ListsSeveralDocuments(t *testing.T) {
	t.Parallel()
	var list changes.List
	list.Put(load(t, strict), nil)
	p := list.Preview("Registers documents")
	require.Len(t, p.Changes, 1)
	require.Contains(t, p.Changes[0], "added: policy shop\n")
	list.Put(load(t, settings), []byte(settings))
	p = list.Preview("Registers documents")
	require.Subset(t, p.Changes, []string{"added: policy shop", "unchanged: tenant acme"})
}
