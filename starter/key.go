package starter

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/toolname"
)

// signingKeySetting is the environment variable with the file of the signing key, used if --key is not given.
const signingKeySetting = "JIG_SIGNING_KEY"

// principalLine is the prefix of the line in a key file that names the key's principal. The line comes before the PEM block.
const principalLine = "# principal: "

// maxPrincipal is the maximum length of a principal in documents, in characters.
const maxPrincipal = 128

func (a *app) keyCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:     "key",
		Short:   "Create, enrol and disable keys that sign decisions",
		Example: `  jig key new --principal ana --out ana.key`,
	}, a.keyNewCommand(), a.keyEnrolCommand(), a.disableCommand("key", true), a.disableCommand("key", false))
}

func (a *app) keyEnrolCommand() *cobra.Command {
	var f triggerFlags
	cmd := &cobra.Command{
		Use:   "enrol",
		Short: "Ask the owners of the tenant to accept your key",
		Long: `Ask the owners of the tenant to accept your key, by adding it to the tenant's document. Only a server knows who you are, so the command
needs JIG_URL and your credential. It waits until the owners have decided. The private key stays where it is.`,
		Example: `  jig key enrol --key ana.key`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var input json.RawMessage
			if err := a.with(cmd.Context(), func(e engine) (err error) {
				input, err = a.enrolment(cmd.Context(), e)
				return err
			}); err != nil {
				return err
			}
			return a.trigger(cmd.Context(), client.CallInput{Tool: toolname.EnrolKey, Input: input}, f)
		},
	}
	f.add(cmd, "also approve the call, if you are the tenant's only person")
	a.addKeyFlag(cmd)
	return cmd
}

// enrolment returns the input of the tool that enrols the signing key.
func (a *app) enrolment(ctx context.Context, e engine) (json.RawMessage, error) {
	signer, signs, err := a.signer()
	if err != nil {
		return nil, err
	}
	key := signer.Key()
	switch {
	case !signs:
		return nil, usage(jig.Errorf(jig.CodeInvalidInput, "there is no key").WithField("key").
			WithHint("give --key or set " + signingKeySetting + "; `" + a.program + " key new` creates one"))
	case key.Algorithm != identity.AlgorithmEd25519:
		return nil, usage(jig.Errorf(jig.CodeInvalidInput, "the key %s is a secret, which only the tenant's document can name", key.ID).WithField("key"))
	}
	proof, err := a.signSubject(ctx, e, key.Principal, token.ActionEnrol, "key:"+key.ID, "")
	if err != nil {
		return nil, err
	}
	return jsontext.Encode(map[string]string{
		"id": key.ID, "algorithm": key.Algorithm, "public_key": base64.StdEncoding.EncodeToString(key.Material), "token": proof,
	})
}

func (a *app) keyNewCommand() *cobra.Command {
	var principal, out string
	cmd := &cobra.Command{
		Use:   "new --principal NAME --out FILE",
		Short: "Create a key that signs one principal's decisions",
		Long: `Create an Ed25519 key that signs one principal's decisions. The file is for that person only. Add the printed lines to the
document of kind tenant, so that workers know the key. JSON output: {"id", "algorithm", "principal", "public_key", "file"}.`,
		Example: `  jig key new --principal ana --out ana.key
  export JIG_SIGNING_KEY=$PWD/ana.key`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := checkPrincipal(principal); err != nil {
				return err
			}
			if out == "" {
				return usagef("--out is missing: the file for the private key")
			}
			made, err := newKeyFile(principal, out)
			if err != nil {
				return err
			}
			return a.printKey(made)
		},
	}
	cmd.Flags().StringVar(&principal, "principal", "", "principal whose decisions it signs")
	cmd.Flags().StringVar(&out, "out", "", "file for the private key; it must not exist yet")
	_ = cmd.MarkFlagFilename("out") //nolint:errcheck // fails only for an unknown flag
	return cmd
}

// madeKey is the JSON output of `key new`.
type madeKey struct {
	ID        string `json:"id"`
	Algorithm string `json:"algorithm"`
	Principal string `json:"principal"`
	PublicKey string `json:"public_key"`
	File      string `json:"file"`
}

func (a *app) printKey(made madeKey) error {
	if a.json() {
		return a.printJSON(made)
	}
	a.line("keys:\n  - {id: %s, algorithm: %s, principal: %s, public_key: %s}",
		strconv.Quote(made.ID), made.Algorithm, strconv.Quote(made.Principal), strconv.Quote(made.PublicKey))
	a.say("%s holds the private key; add the lines to the tenant's document and register it with `%[2]s catalog add`, or ask for that with "+
		"`%[2]s key enrol`", made.File, a.program)
	a.say("to make it an operator's key, which every tenant accepts, start workers with JIG_OPERATOR_KEY=%s:%s", made.Principal, made.PublicKey)
	return nil
}

func checkPrincipal(principal string) error {
	if principal == "" {
		return usagef("--principal is missing: the principal whose decisions the key signs")
	}
	if identity.CheckName(principal) != nil || utf8.RuneCountInString(principal) > maxPrincipal {
		return usagef("--principal %q is not a principal; it has at most %d characters that people can see, and no spaces around it",
			oneLine(principal, 60), maxPrincipal)
	}
	return nil
}

// newKeyFile creates a key and the file that holds its private half.
func newKeyFile(principal, out string) (madeKey, error) {
	private, public, err := token.NewKey()
	if err != nil {
		return madeKey{}, err
	}
	signer, err := token.ParsePrivateKey(private, "", principal)
	if err != nil {
		return madeKey{}, err
	}
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the user names the file
	if errors.Is(err, fs.ErrExist) {
		return madeKey{}, usage(jig.Errorf(jig.CodeConflict, "%s already exists; a key is never overwritten", out).WithField("out").
			WithHint("give another --out, or remove the file if nobody needs the key"))
	}
	if err != nil {
		return madeKey{}, usage(fmt.Errorf("--out: %w", err))
	}
	_, err = f.WriteString(principalLine + principal + "\n" + string(private))
	if err = errors.Join(err, f.Close()); err != nil {
		return madeKey{}, fmt.Errorf("write the key: %w", errors.Join(err, os.Remove(out)))
	}
	return madeKey{ID: signer.ID(), Algorithm: identity.AlgorithmEd25519, Principal: principal, PublicKey: public, File: out}, nil
}

// readKeyFile reads a private key. If the file names no principal, for example because OpenSSL wrote it, the key belongs to the
// principal given as otherwise.
func readKeyFile(name string, content []byte, otherwise string) (token.Signer, error) {
	principal := otherwise
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "-----BEGIN") {
			break
		}
		if said, ok := strings.CutPrefix(line, principalLine); ok && strings.TrimSpace(said) != "" {
			principal = strings.TrimSpace(said)
		}
	}
	signer, err := token.ParsePrivateKey(content, "", principal)
	if err != nil {
		e := *jig.AsError(err)
		e.Message = name + ": " + e.Message
		return token.Signer{}, usage(&e)
	}
	return signer, nil
}

// addKeyFlag adds --key to a command that signs.
func (a *app) addKeyFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.flags.key, "key", "", "file with the signing key ("+signingKeySetting+")")
	_ = cmd.MarkFlagFilename("key") //nolint:errcheck // fails only for an unknown flag
}

// signer returns the key of --key or JIG_SIGNING_KEY; false if neither is given.
func (a *app) signer() (token.Signer, bool, error) {
	name, from := a.flags.key, "--key"
	if name == "" {
		name, from = a.env[signingKeySetting], signingKeySetting
	}
	if name == "" {
		return token.Signer{}, false, nil
	}
	if name == "-" {
		return token.Signer{}, false, usagef("%s is -; a key is only read from a file", from)
	}
	content, err := a.readFile(name)
	if err != nil {
		return token.Signer{}, false, usage(fmt.Errorf("%s: %w", from, err))
	}
	s, err := readKeyFile(name, content, a.flags.as)
	return s, err == nil, err
}

// actor returns the deciding principal: the principal of the signing key or, without a key, the principal of --as. If the user named a
// principal other than the key's, it returns an error; the default, the user name of the operating system, does not count as named.
func (a *app) actor() (string, error) {
	s, signs, err := a.signer()
	if err != nil || !signs {
		return a.flags.as, err
	}
	if a.named && a.flags.as != s.Principal() {
		return "", usage(jig.Errorf(jig.CodeNotPermitted, "the key %s belongs to %s, but you act as %s", s.ID(), s.Principal(), a.flags.as).
			WithField("as").WithHint("leave out --as and JIG_PRINCIPAL, or sign with a key that belongs to " + a.flags.as))
	}
	return s.Principal(), nil
}

// sign returns a token for a claim, valid for token.DefaultLifetime; "" if there is no key. If the claim names no principal, sign fills in
// the key's.
func (a *app) sign(claim identity.Claim) (string, error) {
	s, signs, err := a.signer()
	if err != nil || !signs {
		return "", err
	}
	text, err := token.Sign(claim, s, time.Now(), token.DefaultLifetime)
	if err != nil {
		return "", usage(err)
	}
	return text, nil
}
