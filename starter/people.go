package starter

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
)

func (a *app) peopleCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "people",
		Short: "List and disable the people of the tenant, and show credential events",
		Long: `List the people, groups and keys in the tenant's document, and disable or enable people. ` + "`jig key disable`" + ` disables a key.
Show credential events: logins and logouts, API keys and embed tokens that were created or revoked, and refused credentials.`,
		Example: `  jig people list
  jig people disable ana
  jig people events --kind refused`,
	}, a.peopleListCommand(), a.peopleEventsCommand(), a.dependentsCommand(), a.takeOverKeyCommand(), a.disableCommand("people", true), a.disableCommand("people", false))
	return cmd
}

func (a *app) peopleListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the people, groups and keys of the tenant",
		Long: `List the people, groups and keys in the tenant's document. JSON output: {"people": [{"principal", "disabled", "groups", "roles",
"permissions", "logins", "keys": [{"id", "algorithm", "disabled"}]}], "groups": [{"name", "members", "roles"}], "keys"}.`,
		Example: `  jig people list
  jig people list --output json | jq '.people[] | select(.disabled)'`,
		Args: cobra.NoArgs,
		RunE: a.using(func(ctx context.Context, e engine, _ []string) error {
			d, err := a.directory(ctx, e)
			switch {
			case err != nil:
				return err
			case a.json():
				return a.printJSON(d)
			}
			return a.printPeople(d)
		}),
	}
}

func (a *app) peopleEventsCommand() *cobra.Command {
	var kind, principal string
	limit := 40
	cmd := &cobra.Command{
		Use:   "events",
		Short: "List logins, changes of API keys and embed tokens, and refused credentials",
		Long: `List the tenant's credential events of the last 90 days, newest first: logins and logouts, API keys and embed tokens that were created or
revoked, and refused credentials. Equal events within a minute are one line with a count. This needs a server and the scope manage.
JSON output: {"credential_events": [{"kind", "reason", "credential_kind", "credential_id", "principal", "address", "count", "minute", "last_at"}]}.`,
		Example: `  jig people events
  jig people events --kind refused --principal ana`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usagef("--limit: give a number of at least 1")
			}
			if err := a.connected("credential events need"); err != nil {
				return err
			}
			defer a.server.Close()
			found := identity.CredentialEvents{Events: []identity.CredentialEvent{}}
			for {
				page, err := a.server.CredentialEvents(cmd.Context(), kind, principal, found.Next, min(limit-len(found.Events), maxListed))
				if err != nil {
					return err
				}
				found.Events, found.Next = append(found.Events, page.Events...), page.Next
				if found.Next == "" || len(found.Events) >= limit {
					break
				}
			}
			return a.output(found, func() error { return a.printCredentialEvents(found.Events) })
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "only these: refused, logged_in, logged_out, key_created, key_revoked, key_taken_over, embed_created, embed_revoked")
	cmd.Flags().StringVar(&principal, "principal", "", "only those of this principal")
	cmd.Flags().IntVar(&limit, "limit", limit, "print at most this many")
	return cmd
}

func (a *app) takeOverKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "take-over KEY",
		Short: "Take over an API key that somebody else made",
		Long: `Take over an API key, so that it counts as made with your credential and no longer ends with the person or the key that made it. Its principal
and scopes stay. Its text is a new one, which is printed once; whoever made the key knows the old one, which no longer counts. KEY is the id of the
key. This needs a server and the scope manage; credential events name you. JSON output: the key, as in "jig api-key list", with "key", its text.`,
		Example: `  jig people take-over abcdefghij234567`,
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.connected("taking over keys needs"); err != nil {
				return err
			}
			defer a.server.Close()
			k, err := a.server.TakeOverKey(cmd.Context(), args[0])
			switch {
			case err != nil:
				return err
			case a.json():
				return a.printJSON(k)
			}
			a.say("%s acts as %s, and is yours; this is its new text", oneLine(k.ID, 0), oneLine(k.Principal, 0))
			return a.print("%s", k.Text)
		},
	}
}

// connected returns an error if the user named no server that can be used. needs is the beginning of its message.
func (a *app) connected(needs string) error {
	switch {
	case a.serverErr != nil:
		return a.serverErr
	case a.server == nil:
		return usagef("%s a server; set %s or --url", needs, envURL)
	}
	return nil
}

// maxListed is the maximum number of entries on a page of a server.
const maxListed = 100

func (a *app) printCredentialEvents(events []identity.CredentialEvent) error {
	rows := [][]string{}
	for _, e := range events {
		what := strings.TrimSpace(strings.ReplaceAll(e.Kind, "_", " ") + " " + oneLine(e.Reason, 0))
		if e.Count > 1 {
			what += fmt.Sprintf(" (%d times)", e.Count)
		}
		rows = append(rows, []string{
			e.LastAt.Local().Format(time.DateTime), what, oneLine(e.Principal, 60), strings.ReplaceAll(oneLine(e.CredentialKind, 0), "_", " "), oneLine(e.CredentialID, 60), oneLine(e.Address, 0),
		})
	}
	return a.printTable(rows)
}

// directory reads the people, groups and keys of the tenant's document.
func (a *app) directory(ctx context.Context, e engine) (tenancy.Directory, error) {
	body, err := e.Document(ctx, a.flags.tenant, string(spec.KindTenant), a.flags.tenant)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return spec.Tenant{}.Directory(), nil
	}
	if err != nil {
		return tenancy.Directory{}, err
	}
	t, err := spec.LoadTenant(a.flags.tenant, body)
	return t.Directory(), err
}

func (a *app) printPeople(d tenancy.Directory) error {
	var rows [][]string
	for _, p := range d.People {
		rows = append(rows, []string{oneLine(p.Principal, 0), a.state(p.Disabled), oneLine(strings.Join(append(p.Roles, p.Groups...), ", "), 60)})
		for _, k := range p.Keys {
			rows = append(rows, []string{"  key " + oneLine(k.ID, 0), a.state(k.Disabled), k.Algorithm})
		}
	}
	for _, k := range d.Keys {
		rows = append(rows, []string{"key " + oneLine(k.ID, 0), a.state(k.Disabled), k.Algorithm + ", signs for everybody"})
	}
	a.table(rows)
	if len(d.People) == 0 {
		a.say("tenant %s has no document, or the document lists no people", a.flags.tenant)
	}
	return nil
}

func (a *app) state(disabled bool) string {
	if disabled {
		return a.out.red("disabled")
	}
	return "active"
}

// disableCommand returns the command that disables people or keys, or the one that enables them again.
func (a *app) disableCommand(what string, disabled bool) *cobra.Command {
	var f triggerFlags
	word, member, arg, example, does, means := "enable", "person", "PRINCIPAL", "ana", "Enable a disabled person", "Servers and workers accept their requests again."
	switch {
	case disabled && what == "key":
		word, means = "disable", "Signatures of the key are refused, including those of earlier decisions."
	case disabled:
		word, means = "disable", "Servers and workers refuse all their requests, with any credential, and their open streams end.\n"+
			"With a server, the command first lists what else ends, and asks on a terminal whether to go on, unless --yes is given."
	case what == "key":
		means = "Signatures of the key are accepted again."
	}
	if what == "key" {
		member, arg, example, does = "key", "ID", "ana-2026", "Enable a disabled key"
	}
	if disabled {
		does = "Disable a " + member
	}
	cmd := &cobra.Command{
		Use:   word + " " + arg,
		Short: does,
		Long: fmt.Sprintf(`%s, by changing the tenant's document. %s
The owners of the tenant approve it. The command waits for them, and the change takes effect within a second.`, does, means),
		Example: fmt.Sprintf("  jig %s %s %s", what, word, example),
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			input, err := jsontext.Encode(map[string]any{member: args[0], "disabled": disabled})
			if err != nil {
				return err
			}
			if disabled && what == "people" && a.server != nil {
				list, err := a.server.Dependents(cmd.Context(), args[0], "")
				if err == nil {
					err = a.confirmDependents(cmd.Context(), "Disable "+oneLine(args[0], 60)+"?", f.yes, list)
				}
				if err != nil {
					return err
				}
			}
			return a.trigger(cmd.Context(), client.CallInput{Tool: toolname.SetDisabled, Input: input}, f)
		},
	}
	f.add(cmd, "also approve the call, if you may")
	return cmd
}

func (a *app) dependentsCommand() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "dependents PRINCIPAL|--key ID",
		Short: "List what ends with a person or an API key",
		Long: `List the API keys, embed tokens, logins, schedules and standing approvals that count no longer if a person is disabled or leaves the tenant's
document, or if an API key is revoked. "jig people take-over" and "jig schedule take-over" keep what is still needed. This needs a server.
JSON output: {"dependents": [{"kind", "id", "name", "principal"}]}.`,
		Example: `  jig people dependents ana
  jig people dependents --key abcdefghij234567`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			person := strings.Join(args, "")
			if (person == "") == (key == "") {
				return usagef("give either a principal or --key")
			}
			if err := a.connected("the list of what ends needs"); err != nil {
				return err
			}
			defer a.server.Close()
			list, err := a.server.Dependents(cmd.Context(), person, key)
			switch {
			case err != nil:
				return err
			case a.json():
				return a.printJSON(map[string]any{"dependents": append([]identity.Dependent{}, list...)})
			case len(list) == 0:
				a.say("nothing else ends")
			}
			return a.printTable(dependentRows(list))
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "id of an API key, instead of a person")
	return cmd
}

func dependentRows(list []identity.Dependent) [][]string {
	rows := make([][]string, 0, len(list))
	for _, d := range list {
		rows = append(rows, []string{strings.ReplaceAll(d.Kind, "_", " "), oneLine(d.ID, 60), oneLine(d.Principal, 60), oneLine(d.Name, 60)})
	}
	return rows
}

// confirmDependents shows what ends with a person or a credential and, on a terminal, asks whether to go on; yes means that it does not ask. The error ends
// the program without doing anything.
func (a *app) confirmDependents(ctx context.Context, question string, yes bool, list []identity.Dependent) error {
	if len(list) == 0 {
		return nil
	}
	a.say("this ends, too:")
	a.say("%s", strings.TrimSuffix(tableText(dependentRows(list)), "\n"))
	if yes || !a.interactive {
		return nil
	}
	going, err := a.confirm(ctx, question)
	if err == nil && !going {
		err = silent(exitFailed)
	}
	return err
}
