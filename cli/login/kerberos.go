package login

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/spnego"
)

// acceptsKerberos reports whether a response requests a Kerberos ticket (RFC 4559).
func acceptsKerberos(answer *http.Response) bool {
	for _, challenge := range answer.Header.Values("WWW-Authenticate") {
		if scheme, _, _ := strings.Cut(challenge, " "); strings.EqualFold(scheme, "Negotiate") {
			return true
		}
	}
	return false
}

// kerberosTicket returns an Authorization header with a ticket for the host in an address. It uses
// the tickets that kinit obtained. The environment variables KRB5_CONFIG and KRB5CCNAME specify the
// configuration and ticket cache files.
func kerberosTicket(address string) (string, error) {
	target, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	settings, err := kerberosSettings(cmp.Or(os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf"))
	if err != nil {
		return "", err
	}
	file := strings.TrimPrefix(cmp.Or(os.Getenv("KRB5CCNAME"), fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid())), "FILE:")
	cache, err := credentials.LoadCCache(file)
	if err != nil {
		return "", fmt.Errorf("read Kerberos tickets %q: %w; run kinit", file, err)
	}
	kerberos, err := client.NewFromCCache(cache, settings, client.DisablePAFXFAST(true))
	if err != nil {
		return "", fmt.Errorf("use Kerberos tickets %q: %w; run kinit", file, err)
	}
	defer kerberos.Destroy()
	request := &http.Request{Header: http.Header{}, URL: target}
	if err := spnego.SetSPNEGOHeader(kerberos, request, "HTTP/"+target.Hostname()); err != nil {
		return "", fmt.Errorf("get a Kerberos ticket for %q: %w", target.Hostname(), err)
	}
	return request.Header.Get(spnego.HTTPHeaderAuthRequest), nil
}

// kerberosSettings reads a krb5.conf.
func kerberosSettings(file string) (settings *config.Config, err error) {
	defer func() {
		// Recover, because the library panics if a krb5.conf defines a realm on a single line.
		if problem := recover(); problem != nil {
			err = fmt.Errorf("read Kerberos settings %q: write each setting of a realm on its own line", file)
		}
	}()
	if settings, err = config.Load(file); err != nil {
		return nil, fmt.Errorf("read Kerberos settings %q: %w", file, err)
	}
	return settings, nil
}
