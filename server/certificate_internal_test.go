package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// certify writes a new certificate for this machine and its key to cert.pem and key.pem in a folder.
func certify(t *testing.T, dir string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: serial, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, // so that it can be trusted
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	made, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return made
}

// A server with a certificate answers over HTTP/2, and its health check finds it.
func TestServer_WithACertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made := certify(t, dir)
	r := newRig(t, func(s *Settings) { s.TLSCert, s.TLSKey = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem") })
	require.Equal(t, "https://"+r.listener.Addr().String(), r.URL())
	roots := x509.NewCertPool()
	roots.AddCert(made)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	answer, err := (&http.Client{Transport: transport}).Get(r.URL() + "/readyz")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Equal(t, 2, answer.ProtoMajor)
	asked := Settings{Address: r.listener.Addr().String(), TLSCert: r.settings.TLSCert}
	require.NoError(t, asked.Probe(t.Context()))
	asked.TLSCert = ""
	require.Error(t, asked.Probe(t.Context()))
}

// A renewed certificate counts after a minute at most. Until both files belong together, the last one does.
func TestCertificate_IsReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		file, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		_, err := loadCertificate(file, keyFile, slog.New(slog.DiscardHandler))
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
		require.Equal(t, EnvTLSCert, jig.AsError(err).Field)

		var log bytes.Buffer
		first := certify(t, dir)
		c, err := loadCertificate(file, keyFile, slog.New(slog.NewTextHandler(&log, nil)))
		require.NoError(t, err)
		used := func() []byte {
			got, err := c.forHandshake(&tls.ClientHelloInfo{})
			require.NoError(t, err)
			return got.Certificate[0]
		}
		require.Equal(t, first.Raw, used())

		oldKey, err := os.ReadFile(keyFile)
		require.NoError(t, err)
		second := certify(t, dir)
		newKey, err := os.ReadFile(keyFile)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(keyFile, oldKey, 0o600))
		time.Sleep(certificateAge)
		require.Equal(t, first.Raw, used())
		require.Contains(t, log.String(), "the certificate cannot be reread")

		require.NoError(t, os.WriteFile(keyFile, newKey, 0o600))
		require.Equal(t, first.Raw, used(), "the files are read once a minute")
		time.Sleep(certificateAge)
		require.Equal(t, second.Raw, used())
	})
}
