package f5

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"slices"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/router/certificate"
	"github.com/slipway-platform/slipway/router/model"
)

// clientProfile is a client SSL profile, which specifies a host's certificate. Its values are full
// paths.
type clientProfile struct {
	Cert       string `json:"cert"`
	Key        string `json:"key"`
	Chain      string `json:"chain"`
	ServerName string `json:"serverName"`
}

// serverProfile is a server SSL profile, which the appliance uses to verify a host's pods.
type serverProfile struct {
	CAFile           string `json:"caFile"`
	PeerCertMode     string `json:"peerCertMode"`
	AuthenticateName string `json:"authenticateName"`
	ServerName       string `json:"serverName"`
}

// none is the value that the appliance uses for an unset attribute.
const none = "none"

func (p clientProfile) complete() clientProfile {
	p.Chain = cmp.Or(p.Chain, none)
	return p
}

func (p serverProfile) complete() serverProfile {
	p.AuthenticateName = cmp.Or(p.AuthenticateName, none)
	return p
}

// clientProfile adds a profile for a route with a certificate, unless the host already has a
// profile. For hosts without a profile, the appliance uses the virtual server's default profile.
func (b *builder) clientProfile(alias *model.ServiceAliasConfig) {
	own, chain := alias.Certificates[alias.Host], alias.Certificates[alias.Host+"_ca"]
	for _, profile := range b.clients {
		if profile.ServerName == serverName(alias) {
			return
		}
	}
	bundle, err := certificate.Bundle(&routev1.TLSConfig{Certificate: own.Contents, Key: own.PrivateKey, CACertificate: chain.Contents})
	if own.Contents == "" || err != nil { // invalid certificates are not admitted
		return
	}
	leaf, rest := pem.Decode(bundle)
	var intermediates, key bytes.Buffer
	for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
		part := &intermediates
		if block.Type != leaf.Type {
			part = &key
		}
		_ = pem.Encode(part, block) // writing to a buffer never fails
	}
	stem := routeName(alias) + "-" + digest(string(bundle))
	profile := clientProfile{
		Cert: b.file(b.certificates, stem+".crt", string(pem.EncodeToMemory(leaf))),
		Key:  b.file(b.keys, stem+".key", key.String()), Chain: none, ServerName: serverName(alias),
	}
	if intermediates.Len() > 0 {
		profile.Chain = b.file(b.certificates, stem+"-chain.crt", intermediates.String())
	}
	b.clients[routeName(alias)+"-client-ssl-profile"] = profile
}

// serverProfile adds a profile for a re-encrypt route, unless the host already has a profile. Pods
// need a certificate that is signed by the route's CA, or a certificate for their service that is
// signed by the service CA. Without either CA, the appliance cannot verify pods, so serverProfile
// returns false and the route must not be served.
func (b *builder) serverProfile(alias *model.ServiceAliasConfig) bool {
	authority, name := alias.Certificates[alias.Host+"_pod"].Contents, none
	if alias.VerifyServiceHostname {
		authority, name = b.serviceCA, b.serviceHost(alias)
	}
	bundle, err := certificate.Authorities(authority)
	if err != nil {
		return false
	}
	for _, profile := range b.servers {
		if profile.ServerName == serverName(alias) {
			return true
		}
	}
	b.servers[routeName(alias)+"-server-ssl-profile"] = serverProfile{
		CAFile:       b.file(b.certificates, routeName(alias)+"-"+digest(string(bundle))+"-ca.crt", string(bundle)),
		PeerCertMode: "require", AuthenticateName: name, ServerName: serverName(alias),
	}
	return true
}

// serviceHost returns the name in the certificates of the route's service. If the route has several
// services, it uses the first service.
func (b *builder) serviceHost(alias *model.ServiceAliasConfig) string {
	var hosts []string
	for unit, weight := range alias.ServiceUnits {
		if weight > 0 {
			hosts = append(hosts, b.state.ServiceUnits[unit].Hostname)
		}
	}
	if len(hosts) == 0 {
		return none
	}
	return slices.Min(hosts)
}

// file adds a file and returns the file's full path.
func (b *builder) file(files map[string]string, name, content string) string {
	files[name] = content
	return b.partition + "/" + name
}

// digest returns the part of a file name that depends on the file's content.
func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:6])
}
