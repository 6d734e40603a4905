package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/certtest"
)

func TestRouterDryRunPrintsObjects(t *testing.T) {
	for name, flags := range map[string]string{
		"router":     "--stats-password=open",
		"router-all": "gold --ports=8081,8444,5000 --stats-port=1937 --stats-password=open --labels=tier=gold --selector=zone=edge --replicas=2 --service-account=edge --force-subdomain=${name}.example.com --max-connections=100 --threads=2 --ciphers=modern --strict-sni --disable-namespace-ownership-check --router-canonical-hostname=gold.example.com --extended-logging --external-host=lb.example.com --external-host-insecure --external-host-password=hidden --images=registry.example.com/${component}:${version} --latest-images",
		"router-own": "inner --own-project --host-network=false --host-ports=false --stats-port=0 --stats-password=open",
	} {
		args := append([]string{"--namespace=shop", "adm", "router", "--local", "--dry-run", "-o", "yaml"}, strings.Fields(flags)...)
		stdout, stderr, code := client(t, "oc", nil, args...)
		if code != 0 {
			t.Errorf("%s: code %d, %s", name, code, stderr)
			continue
		}
		if collides := strings.Contains(stderr, "slipway.router.disabled"); collides != (name == "router") {
			t.Errorf("%s: the note about ports is %q", name, stderr)
		}
		Golden(t, "adm-"+name+".golden", stdout)
	}
}

func TestRouterObjectsContainFiles(t *testing.T) {
	authority := certtest.New(t)
	pair := authority.Issue(t, "any", "any.example.com")
	full, key := filepath.Join(t.TempDir(), "whole.pem"), filepath.Join(t.TempDir(), "id")
	var content []byte
	for _, file := range []string{pair.CertFile, pair.KeyFile} {
		part, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		content = append(content, part...)
	}
	if err := os.WriteFile(full, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, []byte("ssh"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := client(t, "oc", nil, "--namespace=shop", "adm", "router", "--local", "--dry-run", "-o", "yaml", "--default-cert", full,
		"--mutual-tls-auth=required", "--mutual-tls-auth-ca", pair.CertFile, "--mutual-tls-auth-crl", pair.CertFile, "--mutual-tls-auth-filter=CN=a", "--external-host-private-key", key)
	if code != 0 {
		t.Fatal(stderr)
	}
	for _, want := range []string{
		"type: kubernetes.io/tls", "secretName: router-certs", "name: router-client-ca", "crl.pem: |", "value: required", "value: /etc/pki/tls/client/ca.pem", "value: /etc/pki/tls/client/crl.pem",
		"value: CN=a", "value: /etc/secret-volume/router.pem", "router.pem: ssh",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "serving-cert-secret-name") {
		t.Error("the service requests a certificate, although a flag sets one")
	}
}

func TestRouterReportsInvalidFlags(t *testing.T) {
	for args, want := range map[string]string{
		"Bad_Name": "parse name", "--ports=80": "one for HTTPS", "--ports=80:8080,443": "container port 80 and host port 8080 must be equal", "--ports=80,80": "appears twice", "--ports=0,1": "neither PORT",
		"--ports=80,1936": "is the port of --stats-port", "--stats-port=70000": "must be a port", "--type=other": "must be haproxy-router or f5-router", "--type=f5-router": "--external-host-password", "--mutual-tls-auth=maybe": "none, optional or required",
		"--mutual-tls-auth=required": "--mutual-tls-auth-ca", "--replicas=-1": "must not be negative", "--labels=a=b=c": "parse --labels", "--selector==": "parse --selector",
		"--default-cert=/etc/hosts": "must contain a private key and its certificate", "--default-cert=/nowhere": "no such file",
	} {
		_, stderr, code := client(t, "oc", nil, append([]string{"--namespace=shop", "adm", "router", "--dry-run"}, strings.Fields(args)...)...)
		if code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%s: code %d, stderr %q, want %q", args, code, stderr, want)
		}
	}
}
