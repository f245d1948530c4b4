// Package vouch lets a server vouch for the principals whom it has authenticated. The server signs statements about its requests to workers with its own
// key. A certificate of the root key makes that key valid for some time. Workers have the public root key in their settings, so somebody who can write only
// to the database cannot add a server's key.
//
// [NewRoot] and [NewServerKey] make the keys, a [Signer] signs a statement, [Verify] checks one with a key, and [Known] finds the key that a statement names
// among those of the database.
package vouch

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Lifetimes of server keys.
const (
	DefaultLifetime = 90 * 24 * time.Hour
	MaxLifetime     = 400 * 24 * time.Hour
)

// Leeway is the tolerated difference between clocks.
const Leeway = 30 * time.Second

// typeCertificate is the type of certificates, so that no other token counts as one.
const typeCertificate = "jig-server-key+jwt"

const (
	pemType = "PRIVATE KEY"
	// certificateLine begins the line before the private key that holds its certificate.
	certificateLine = "# certificate: "
)

// Key is a server's public key as its certificate describes it.
type Key struct {
	ID string
	// Public is an Ed25519 public key.
	Public []byte
	// From and Until bound when statements may be signed with it.
	From, Until time.Time
}

// Stored is a server's key as the database has it. Only its certificate counts.
type Stored struct {
	ID          string     `json:"id"`
	Certificate string     `json:"certificate"`
	CreatedAt   time.Time  `json:"created_at"`
	RevokedAt   *time.Time `json:"revoked_at,omitempty"`
}

// Signer is a server's key with its certificate. The zero value cannot sign.
type Signer struct {
	private     ed25519.PrivateKey
	id          string
	certificate string
	until       time.Time
}

// ID returns the key's id.
func (s Signer) ID() string { return s.id }

// Certificate returns the certificate of the key.
func (s Signer) Certificate() string { return s.certificate }

// Until returns the end of the certificate.
func (s Signer) Until() time.Time { return s.until }

// String returns the key's id, so that printing a signer does not print its secret.
func (s Signer) String() string { return "server key " + s.id }

// GoString returns the same as String.
func (s Signer) GoString() string { return s.String() }

// certified holds the claims of a certificate.
type certified struct {
	jwt.RegisteredClaims
	Public []byte `json:"public_key"`
}

// NewRoot makes a root key. It returns the content of its file and the public key in base64, as workers' settings have it.
func NewRoot() (file []byte, public string, err error) {
	pub, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, "", jig.Errorf(jig.CodeInternal, "make a key: %w", err)
	}
	file, err = encode(private)
	return file, base64.StdEncoding.EncodeToString(pub), err
}

// NewServerKey makes a server's key and certifies it with the root key in a file. It returns the content of the key's file.
func NewServerKey(root []byte, now time.Time, lifetime time.Duration) (file []byte, key Key, err error) {
	if lifetime == 0 {
		lifetime = DefaultLifetime
	}
	if lifetime < time.Hour || lifetime > MaxLifetime {
		return nil, Key{}, jig.Errorf(jig.CodeInvalidInput, "a server's key cannot be valid for %s", lifetime).WithField("lifetime").
			WithHint("use 1h to 400d")
	}
	signs, err := decode(root)
	if err != nil {
		return nil, Key{}, err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, Key{}, jig.Errorf(jig.CodeInternal, "make a key: %w", err)
	}
	from := now.UTC().Truncate(time.Second)
	key = Key{ID: idOf(public), Public: public, From: from, Until: from.Add(lifetime)}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, certified{
		RegisteredClaims: jwt.RegisteredClaims{
			Subject: key.ID, IssuedAt: jwt.NewNumericDate(from), NotBefore: jwt.NewNumericDate(key.From), ExpiresAt: jwt.NewNumericDate(key.Until),
		},
		Public: public,
	})
	t.Header["typ"] = typeCertificate
	certificate, err := t.SignedString(signs)
	if err != nil {
		return nil, Key{}, jig.Errorf(jig.CodeInternal, "sign a certificate: %w", err)
	}
	secret, err := encode(private)
	return append([]byte(certificateLine+certificate+"\n"), secret...), key, err
}

// ReadSigner reads the file of a server's key.
func ReadSigner(file []byte) (Signer, error) {
	private, err := decode(file)
	if err != nil {
		return Signer{}, err
	}
	s := Signer{private: private, id: idOf(publicOf(private))}
	for line := range strings.Lines(string(file)) {
		if text, ok := strings.CutPrefix(line, certificateLine); ok {
			s.certificate = strings.TrimSpace(text)
		}
	}
	if s.certificate == "" {
		return Signer{}, jig.Errorf(jig.CodeInvalidInput, "the key has no certificate").WithField("key").WithHint("make a server's key with `jig server-key new`")
	}
	var claims certified
	if _, _, err := jwt.NewParser().ParseUnverified(s.certificate, &claims); err != nil || claims.Subject != s.id || claims.ExpiresAt == nil {
		return Signer{}, jig.Errorf(jig.CodeInvalidInput, "the certificate in the file is for another key").WithField("key").
			WithHint("make a server's key with `jig server-key new`")
	}
	s.until = claims.ExpiresAt.UTC()
	return s, nil
}

// ReadCertificate returns the key that a certificate of the root key describes, whether it is valid now or not. The error is NOT_PERMITTED.
func ReadCertificate(root []byte, certificate string) (Key, error) {
	var got certified
	refused := func(why string) (Key, error) {
		return Key{}, jig.Errorf(jig.CodeNotPermitted, "the certificate of the server's key is not valid: %s", why).WithField("proof").
			WithHint("certify the key with the root key whose public half the workers have in JIG_ROOT_KEY")
	}
	parser := jwt.NewParser(jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation(), jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}))
	t, err := parser.ParseWithClaims(certificate, &got, func(t *jwt.Token) (any, error) { return typed(t, typeCertificate, root) })
	switch {
	case err != nil || !t.Valid:
		return refused("the root key did not sign it")
	case len(got.Public) != ed25519.PublicKeySize || got.Subject != idOf(got.Public):
		return refused("it names another key")
	case got.NotBefore == nil || got.ExpiresAt == nil || got.ExpiresAt.Sub(got.NotBefore.Time) > MaxLifetime:
		return refused("it has no dates, or is valid for longer than 400 days")
	}
	return Key{ID: got.Subject, Public: got.Public, From: got.NotBefore.UTC(), Until: got.ExpiresAt.UTC()}, nil
}

// typed returns the public key to verify a token with if the token has a type.
func typed(t *jwt.Token, kind string, public []byte) (any, error) {
	_, critical := t.Header["crit"]
	if t.Header["typ"] != kind || critical || len(public) != ed25519.PublicKeySize {
		return nil, jwt.ErrTokenUnverifiable
	}
	return ed25519.PublicKey(public), nil
}

// idOf returns the id of a key: the beginning of the SHA-256 of its public half.
func idOf(public []byte) string {
	sum := sha256.Sum256(public)
	return "srv_" + hex.EncodeToString(sum[:16])
}

func encode(private ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInternal, "encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}

// decode reads an Ed25519 private key in PEM (PKCS#8). Errors contain no part of it.
func decode(file []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(file)
	if block != nil && block.Type == pemType {
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if private, ok := parsed.(ed25519.PrivateKey); err == nil && ok {
			return private, nil
		}
	}
	return nil, jig.Errorf(jig.CodeInvalidInput, "this is not a private Ed25519 key in PEM").WithField("key").
		WithHint("`jig root-key new` makes a root key, and `jig server-key new` a server's key")
}

func publicOf(private ed25519.PrivateKey) []byte { return bytes.Clone(private[ed25519.SeedSize:]) }

// reread is how long a known key is taken to be unchanged.
const reread = time.Second

// Known verifies statements with the servers' keys in a database. It is safe for concurrent use.
type Known struct {
	roots [][]byte
	read  func(context.Context) ([]Stored, error)

	mu   sync.Mutex
	at   time.Time
	keys map[string]known
}

// known is a key whose certificate is valid.
type known struct {
	Key
	revoked bool
}

// NewKnown returns a verifier. roots are the public root keys; without one, no statement counts. read reads the servers' keys.
func NewKnown(roots [][]byte, read func(context.Context) ([]Stored, error)) *Known {
	return &Known{roots: roots, read: read}
}

// Verify verifies a statement; see the function [Verify]. A key that was revoked counts for nothing, whenever it signed.
func (k *Known) Verify(ctx context.Context, text string, want protocol.Statement, at time.Time) (protocol.Statement, error) {
	if len(k.roots) == 0 {
		return protocol.Statement{}, jig.Errorf(jig.CodeNotPermitted, "this worker cannot check the server's statement about the principal").WithField("proof").
			WithHint("set JIG_ROOT_KEY for the workers, or start the server without JIG_SERVER_KEY")
	}
	key, err := k.key(ctx, KeyOf(text))
	if err != nil {
		return protocol.Statement{}, err
	}
	return Verify(text, key, want, at)
}

// key returns the key with an id, if a root key certified it and nobody revoked it.
func (k *Known) key(ctx context.Context, id string) (Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok := k.keys[id]
	if !ok || time.Since(k.at) > reread { // a server that has just started may use a new key
		rows, err := k.read(ctx)
		if err != nil {
			return Key{}, err
		}
		k.at, k.keys = time.Now(), certifiedKeys(k.roots, rows)
		found, ok = k.keys[id]
	}
	switch {
	case !ok:
		return Key{}, refused("its server's key is not known, or no root key of this worker certified it")
	case found.revoked:
		return Key{}, refused("its server's key was revoked")
	}
	return found.Key, nil
}

// certifiedKeys returns the keys whose certificates are valid, by id.
func certifiedKeys(roots [][]byte, rows []Stored) map[string]known {
	keys := map[string]known{}
	for _, row := range rows {
		for _, root := range roots {
			if key, err := ReadCertificate(root, row.Certificate); err == nil && key.ID == row.ID {
				keys[key.ID] = known{Key: key, revoked: row.RevokedAt != nil}
			}
		}
	}
	return keys
}
