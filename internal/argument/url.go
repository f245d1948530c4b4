package argument

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/jig-run/jig"
)

const wholeURL = "write the whole address, such as https://example.com/path"

// URL returns an absolute URL in canonical form: scheme and host in lower case, an international host as ASCII, an IPv6 address in its shortest
// form, without the scheme's default port, and without escapes of characters that need none. It refuses what programs read differently: user
// information, backslashes, control characters and spaces, dot segments, also escaped ones, and numeric hosts in other forms than dotted
// decimal.
func URL(text string) (string, error) {
	refuse := func(why, hint string) (string, error) {
		return "", jig.Errorf(jig.CodeInvalidInput, "%s", why).WithHint(hint)
	}
	switch {
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }):
		return refuse("contains a control character or a space", "write a space in a URL as %20")
	case strings.Contains(text, `\`):
		return refuse("contains a backslash", "separate the parts of the path with /")
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Opaque != "" {
		return refuse("is not a URL", wholeURL)
	}
	_, rest, _ := strings.Cut(text, "//")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, rest := rest[:end], rest[end:]
	switch {
	case u.User != nil || strings.Contains(authority, "@"):
		return refuse("contains user information", "write the URL without a name and a password before the host")
	case dotted(u.EscapedPath()):
		return refuse("contains . or .. as a segment of its path", "write the path without . and ..")
	}
	host, err := hostOf(u.Hostname())
	if err != nil {
		return "", err
	}
	port, err := portOf(u)
	if err != nil {
		return "", err
	}
	rest, ok := plain(rest)
	if !ok {
		return refuse("contains a % that begins no escape", "write % as %25")
	}
	return u.Scheme + "://" + host + port + rest, nil
}

// hostOf returns a host in canonical form.
func hostOf(host string) (string, error) {
	refuse := func(why, hint string) (string, error) {
		return "", jig.Errorf(jig.CodeInvalidInput, "%s", why).WithHint(hint)
	}
	if strings.Contains(host, ":") {
		ip, err := netip.ParseAddr(host)
		switch {
		case err != nil || ip.Zone() != "":
			return refuse("has no valid IPv6 address as its host", "write the address in brackets, without a zone")
		case ip.Is4In6():
			return refuse("has an IPv4 address in the form of an IPv6 address as its host", "write "+ip.Unmap().String())
		}
		return "[" + ip.String() + "]", nil
	}
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(host, "."))
	if err != nil { // names with underscores, for example, are in use
		ascii = strings.ToLower(strings.TrimSuffix(host, "."))
	}
	ascii = strings.TrimSuffix(ascii, ".")
	labels := strings.Split(ascii, ".")
	switch {
	case ascii == "":
		return refuse("has no host", wholeURL)
	case slices.Contains(labels, "") || strings.ContainsFunc(ascii, func(r rune) bool { return r > unicode.MaxASCII || strings.ContainsRune(`%"<>^|{}`+"`", r) }):
		return refuse("has no valid host", wholeURL)
	case numeric(labels[len(labels)-1]):
		if ip, err := netip.ParseAddr(ascii); err != nil || ip.String() != ascii {
			return refuse("has a numeric host that is not an IPv4 address in dotted decimal", "write it as four numbers from 0 to 255, such as 192.0.2.1")
		}
	}
	return ascii, nil
}

// numeric reports whether a host whose last label is this one is read as an IPv4 address by some programs.
func numeric(label string) bool {
	digits := strings.ContainsFunc(label, func(r rune) bool { return r < '0' || r > '9' })
	_, err := strconv.ParseUint(strings.TrimPrefix(label, "0x"), 16, 64)
	return !digits || label == "0x" || strings.HasPrefix(label, "0x") && (err == nil || len(label) > 16)
}

func portOf(u *url.URL) (string, error) {
	text := u.Port()
	if text == "" {
		return "", nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", jig.Errorf(jig.CodeInvalidInput, "has no valid port").WithHint("write a number up to 65535")
	}
	usual := map[string]uint64{"http": 80, "ws": 80, "https": 443, "wss": 443, "ftp": 21}
	if port == usual[u.Scheme] {
		return "", nil
	}
	return ":" + strconv.FormatUint(port, 10), nil
}

// dotted reports whether a path has a segment that some programs resolve: . or .., plain or escaped, also beside an escaped slash or before
// parameters.
func dotted(path string) bool {
	decoded := path
	for range 3 { // some programs decode more than once
		next, err := url.PathUnescape(decoded)
		if err != nil {
			break
		}
		decoded = next
	}
	return slices.ContainsFunc(strings.FieldsFunc(decoded, func(r rune) bool { return r == '/' || r == '\\' }), func(s string) bool {
		s, _, _ = strings.Cut(s, ";")
		return s == "." || s == ".."
	})
}

// plain returns what follows the host without escapes of letters, digits and -._~, which mean the same without (RFC 3986, section 6.2.2.2). It
// returns false if an escape lacks its two digits.
func plain(rest string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		if rest[i] != '%' {
			b.WriteByte(rest[i])
			continue
		}
		if i+2 >= len(rest) {
			return "", false
		}
		c, err := strconv.ParseUint(rest[i+1:i+3], 16, 8)
		switch {
		case err != nil:
			return "", false
		case unreserved(byte(c)):
			b.WriteByte(byte(c))
		default:
			b.WriteString(rest[i : i+3])
		}
		i += 2
	}
	return b.String(), true
}

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// Path returns a relative path in canonical form: without "." segments, doubled slashes and slashes at the end; "." is the folder itself. It
// refuses what could mean another file than the text says: ".." segments, a slash at the beginning, backslashes and control characters.
func Path(text string) (string, error) {
	segments := strings.Split(text, "/")
	switch {
	case strings.ContainsFunc(text, unicode.IsControl):
		return "", jig.Errorf(jig.CodeInvalidInput, "contains a control character").WithHint("write the path without it")
	case strings.Contains(text, `\`):
		return "", jig.Errorf(jig.CodeInvalidInput, `contains a backslash`).WithHint("separate folders with /")
	case strings.HasPrefix(text, "/"):
		return "", jig.Errorf(jig.CodeInvalidInput, "is an absolute path").WithHint("write the path relative to its folder, without / at the beginning")
	case slices.Contains(segments, ".."):
		return "", jig.Errorf(jig.CodeInvalidInput, `contains ".." as a segment`).WithHint("write the path without . and ..")
	}
	segments = slices.DeleteFunc(segments, func(s string) bool { return s == "" || s == "." })
	if len(segments) == 0 {
		return ".", nil
	}
	return strings.Join(segments, "/"), nil
}
