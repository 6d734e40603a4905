package group

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
	"github.com/slipway-platform/slipway/internal/ldap/ldaptest"
)

// entries contains the entries of a directory with the groups "admins" and "writers".
const entries = `dn: ou=users,dc=example,dc=com
objectClass: organizationalUnit
ou: users

dn: ou=groups,dc=example,dc=com
objectClass: organizationalUnit
ou: groups

dn: cn=Jane,ou=users,dc=example,dc=com
objectClass: inetOrgPerson
cn: Jane
sn: Smith
mail: jane@example.com

dn: cn=admins,ou=groups,dc=example,dc=com
objectClass: groupOfNames
cn: admins
member: cn=Jane,ou=users,dc=example,dc=com

dn: cn=writers,ou=groups,dc=example,dc=com
objectClass: groupOfNames
cn: writers
member: cn=Jane,ou=users,dc=example,dc=com
`

const schema = `rfc2307:
  groupsQuery: {baseDN: 'ou=groups,dc=example,dc=com', scope: sub, filter: '(objectClass=groupOfNames)'}
  groupUIDAttribute: dn
  groupNameAttributes: [cn]
  groupMembershipAttributes: [member]
  usersQuery: {baseDN: 'ou=users,dc=example,dc=com', scope: sub, filter: '(objectClass=inetOrgPerson)'}
  userUIDAttribute: dn
  userNameAttributes: [mail]
`

const (
	groupsPath = "/apis/user.openshift.io/v1/groups"
	adminsDN   = "cn=admins,ou=groups,dc=example,dc=com"
	writersDN  = "cn=writers,ou=groups,dc=example,dc=com"
	formerDN   = "cn=former,ou=groups,dc=example,dc=com"
)

// syncedGroup returns a group in the cluster that was synced from the entry dn in the directory at
// address.
func syncedGroup(name, address, dn string) map[string]any {
	host, _, _ := strings.Cut(address, ":")
	return map[string]any{
		"apiVersion": "user.openshift.io/v1", "kind": "Group", "users": []any{"old@example.com"},
		"metadata": map[string]any{
			"name": name, "labels": map[string]any{ldapHostLabel: host}, "annotations": map[string]any{ldapURLKey: address, ldapUIDKey: dn},
		},
	}
}

// TestGroupsFollowDirectory syncs and prunes groups. The directory contains the groups "admins" and
// "writers". The cluster contains the groups "writers" and "former" from this directory, and the
// group "foreign" from another directory.
func TestGroupsFollowDirectory(t *testing.T) {
	server := ldaptest.Start(t, entries)
	config := filepath.Join(t.TempDir(), "sync.yaml")
	text := fmt.Sprintf("kind: LDAPSyncConfig\napiVersion: v1\nurl: ldap://%s\nbindDN: %s\nbindPassword: %s\nca: %s\n%s",
		server.Address, ldaptest.AdminDN, ldaptest.AdminPassword, server.CAFile, schema)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	writers, former := syncedGroup("writers", server.Address, writersDN), syncedGroup("former", server.Address, formerDN)
	foreign := syncedGroup("foreign", "192.0.2.1:389", formerDN)
	stranger := syncedGroup("admins", "192.0.2.1:389", adminsDN)
	for name, tt := range map[string]struct {
		args, out string
		admins    map[string]any // group "admins" in the cluster, or nil
		writes    []string       // beginnings of the expected requests
		failure   string
	}{
		"sync": {"sync --confirm", "group/admins\ngroup/writers\n", nil, []string{
			"POST " + groupsPath + " ", "PUT " + groupsPath + "/writers ",
		}, ""},
		"sync without confirmation": {"sync cn=writers,ou=groups,dc=example,dc=com", "- jane@example.com\n", nil, nil, ""},
		"sync of a selected group":  {"sync --confirm " + adminsDN, "group/admins\n", nil, []string{"POST " + groupsPath + " "}, ""},
		"sync of synced groups": {"sync --type=openshift --confirm", "group/writers\n", nil, []string{
			"PUT " + groupsPath + "/writers ",
		}, formerDN},
		"sync of synced groups by name": {"sync --type=openshift --confirm writers", "group/writers\n", nil, []string{"PUT " + groupsPath + "/writers "}, ""},
		"group of another directory": {"sync --confirm", "group/writers\n", stranger, []string{
			"PUT " + groupsPath + "/writers ",
		}, `group "admins" already exists, but was not synced from "` + adminsDN + `"`},
		"prune":                                 {"prune --confirm", "group/former\n", nil, []string{"DELETE " + groupsPath + "/former "}, ""},
		"prune without confirmation":            {"prune", "group/former\n", nil, nil, ""},
		"prune of a group that is not selected": {"prune --confirm writers", "", nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			items := []any{writers, former, foreign}
			responses := map[string]any{
				"GET " + groupsPath + "/writers":   writers,
				"DELETE " + groupsPath + "/former": map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Success"},
			}
			if tt.admins != nil {
				responses["GET "+groupsPath+"/admins"] = tt.admins
			}
			responses["GET "+groupsPath] = map[string]any{"apiVersion": "user.openshift.io/v1", "kind": "GroupList", "items": items}
			cluster := objectstest.NewServer(t, responses)
			out, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
				return New(cluster.Factory(t), streams)
			}, append(strings.Fields(tt.args), "--sync-config="+config)...)
			if !strings.Contains(failure, tt.failure) || tt.failure == "" && failure != "" {
				t.Errorf("failure %q, want %q", failure, tt.failure)
			}
			if !strings.HasSuffix(out, tt.out) || strings.HasPrefix(tt.out, "group/") && out != tt.out {
				t.Errorf("output\n%swant\n%s", out, tt.out)
			}
			writes := cluster.Writes()
			if len(writes) != len(tt.writes) {
				t.Fatalf("requests %q, want %q", writes, tt.writes)
			}
			for i, write := range writes {
				if !strings.HasPrefix(write+" ", tt.writes[i]) {
					t.Errorf("request %d is %s, want %s", i, write, tt.writes[i])
				}
				if body := strings.TrimPrefix(write, tt.writes[i]); strings.HasPrefix(tt.args, "sync") && !strings.Contains(body, `"users":["jane@example.com"]`) {
					t.Errorf("request %d stores %s", i, body)
				}
			}
		})
	}
}

func TestSyncRejectsWrongSettings(t *testing.T) {
	wrong := filepath.Join(t.TempDir(), "sync.yaml")
	if err := os.WriteFile(wrong, []byte("kind: MasterConfig\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	want := map[string]string{
		"sync":                             "--sync-config is required",
		"prune":                            "--sync-config is required",
		"sync --sync-config=/x --type=all": `--type "all" must be ldap or openshift`,
		"sync --sync-config=/nowhere":      "/nowhere",
		"prune --sync-config=" + wrong:     wrong,
	}
	for args, part := range want {
		_, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command { return New(nil, streams) }, strings.Fields(args)...)
		if strings.Contains(failure, part) {
			got[args] = part
			continue
		}
		got[args] = failure
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}
