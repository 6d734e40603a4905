package group

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

func TestUsersOfGroupsChange(t *testing.T) {
	const path = "/apis/user.openshift.io/v1/groups/dev"
	responses := map[string]any{"GET " + path: map[string]any{
		"apiVersion": "user.openshift.io/v1", "kind": "Group", "metadata": map[string]any{"name": "dev"}, "users": []any{"alice", "bob"},
	}}
	for _, tt := range []struct{ name, args, out, users, failure string }{
		{"add", "add-users dev carol dave", `group.user.openshift.io/dev added: "carol", "dave"`, `["alice","bob","carol","dave"]`, ""},
		{"add a member", "add-users dev bob carol", `group.user.openshift.io/dev added: "bob", "carol"`, `["alice","bob","carol"]`, ""},
		{"remove", "remove-users dev alice", `group.user.openshift.io/dev removed: "alice"`, `["bob"]`, ""},
		{"remove a user who is not a member", "remove-users dev carol", `group.user.openshift.io/dev removed: "carol"`, `["alice","bob"]`, ""},
		{"name with a percent sign", "add-users dev 100%", `group.user.openshift.io/dev added: "100%"`, `["alice","bob","100%"]`, ""},
		{"dry run", "add-users dev carol --dry-run=client", `group.user.openshift.io/dev added: "carol" (dry run)`, "", ""},
		{"missing group", "add-users ops carol", "", "", "could not find the requested resource"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := objectstest.NewServer(t, responses)
			out, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
				return New(server.Factory(t), streams)
			}, strings.Fields(tt.args)...)
			if strings.TrimSpace(out) != tt.out || !strings.Contains(failure, tt.failure) || tt.failure == "" && failure != "" {
				t.Errorf("got %q, failure %q, want %q, failure %q", out, failure, tt.out, tt.failure)
			}
			var want []string
			if tt.users != "" {
				want = []string{"PUT " + path + ` {"apiVersion":"user.openshift.io/v1","kind":"Group","metadata":{"name":"dev"},"users":` + tt.users + "}"}
			}
			if diff := cmp.Diff(want, server.Writes()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestListsSelectGroups(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	two := file("two", "cn=a\n\n  group/cn=b \n")
	for _, tt := range []struct {
		name, white, black string
		arguments, want    []string
		fails              bool
	}{
		{"all", "", "", nil, []string{"cn=a", "cn=b", "cn=c"}, false},
		{"file of groups", two, "", nil, []string{"cn=a", "cn=b"}, false},
		{"arguments", "", "", []string{"cn=c"}, []string{"cn=c"}, false},
		{"file and arguments", two, "", []string{"cn=c"}, []string{"cn=a", "cn=b", "cn=c"}, false},
		{"exceptions", "", two, nil, []string{"cn=c"}, false},
		{"exceptions precede", two, file("one", "cn=a"), nil, []string{"cn=b"}, false},
		{"empty file", file("empty", "\n"), "", nil, []string{"cn=a", "cn=b", "cn=c"}, false},
		{"missing file", filepath.Join(dir, "none"), "", nil, nil, true},
		{"missing file of exceptions", "", filepath.Join(dir, "none"), nil, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := &ldapGroups{whitelist: tt.white, blacklist: tt.black}
			got, err := o.selectGroups([]string{"cn=a", "cn=b", "cn=c"}, tt.arguments, func(name string) string { return name })
			if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != tt.fails {
				t.Errorf("error %v, groups (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestCertificateAuthorityOfTheDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		config legacyv1.LDAPSyncConfig
		want   string
	}{
		{"none", legacyv1.LDAPSyncConfig{}, ""},
		{"missing file", legacyv1.LDAPSyncConfig{CA: "/nowhere"}, "read certificate authority: open /nowhere"},
		{"file without a certificate", legacyv1.LDAPSyncConfig{CA: file}, "no certificate in the file"},
		{"password in a missing file", legacyv1.LDAPSyncConfig{BindPassword: legacyv1.StringSource{StringSourceSpec: legacyv1.StringSourceSpec{File: "/nowhere"}}}, "bindPassword: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server, err := serverOf(&tt.config)
			if tt.want == "" {
				if err != nil || server.TLS.RootCAs != nil {
					t.Errorf("got %+v, error %v", server, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}
