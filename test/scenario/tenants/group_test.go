package tenants

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/ldap/ldaptest"
	"github.com/slipway-platform/slipway/test/kit"
)

const directory = `dn: ou=people,dc=example,dc=com
objectClass: organizationalUnit
ou: people

dn: uid=pia,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: pia
cn: Pia
sn: P.

dn: uid=quin,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: quin
cn: Quin
sn: Q.

dn: cn=shop,dc=example,dc=com
objectClass: groupOfNames
cn: shop
member: uid=pia,ou=people,dc=example,dc=com
member: uid=quin,ou=people,dc=example,dc=com

dn: cn=night,dc=example,dc=com
objectClass: groupOfNames
cn: night
member: uid=quin,ou=people,dc=example,dc=com
`

// reach forwards connections from the cluster's network to an address on this machine. It returns
// the address that programs in the cluster's network connect to.
func reach(t *testing.T, c *kit.Cluster, server string) string {
	t.Helper()
	listener, err := c.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			inside, err := listener.Accept()
			if err != nil {
				return // the listener is closed
			}
			outside, err := net.Dial("tcp", server)
			if err != nil {
				inside.Close()
				continue
			}
			go func() { defer outside.Close(); _, _ = io.Copy(outside, inside) }()
			go func() { defer inside.Close(); _, _ = io.Copy(inside, outside) }()
		}
	}()
	return listener.Addr().String()
}

func TestGroupsOfDirectoryGrantRights(t *testing.T) {
	c := tenants(t)
	server := ldaptest.Start(t, directory)
	dir := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	config := write("sync.yaml", fmt.Sprintf(`
kind: LDAPSyncConfig
apiVersion: v1
url: ldap://%s
bindDN: %s
bindPassword: %s
insecure: true
rfc2307:
  groupsQuery: {baseDN: 'dc=example,dc=com', scope: sub, derefAliases: never, filter: '(objectClass=groupOfNames)'}
  groupUIDAttribute: dn
  groupNameAttributes: [cn]
  groupMembershipAttributes: [member]
  usersQuery: {baseDN: 'ou=people,dc=example,dc=com', scope: sub, derefAliases: never}
  userUIDAttribute: dn
  userNameAttributes: [uid]
`, reach(t, c, server.Address), ldaptest.AdminDN, ldaptest.AdminPassword))
	t.Cleanup(func() { c.OC("delete", "group", "shop", "night", "--ignore-not-found") })

	has(t, c.OC("adm", "groups", "sync", "--sync-config="+config), "shop", "pia", "quin")
	if _, err := c.TryOC("get", "group", "shop"); err == nil {
		t.Error("a synchronization that was not confirmed created a group")
	}
	night := write("night.txt", "cn=night,dc=example,dc=com\n")
	c.OC("adm", "groups", "sync", "--sync-config="+config, "--blacklist="+night, "--confirm")
	if got := c.OC("get", "groups", "-o", "name"); strings.Contains(got, "night") || !strings.Contains(got, "shop") {
		t.Errorf("with the blacklist, the groups are %s", got)
	}
	c.OC("adm", "groups", "sync", "--sync-config="+config, "--confirm")
	has(t, c.OC("get", "group", "shop", "-o", "jsonpath={.users}"), `["pia","quin"]`)

	// A group's members must receive the group's permissions when they log in.
	c.OC("create", "rolebinding", "shop", "--clusterrole=view", "--group=shop")
	c.WaitFor("the rights of a group", func(context.Context) error {
		_, err := c.User("pia", "shop").Try("GET", kit.CorePath(c.Namespace, "configmaps"), "")
		return err
	})

	// Prune the groups that no longer have an LDAP entry.
	server.Delete(t, "cn=night,dc=example,dc=com")
	c.OC("adm", "groups", "prune", "--sync-config="+config)
	c.OC("get", "group", "night") // without --confirm, the command must delete nothing
	// Unlike for synchronization, the lists for pruning contain the names of the cluster's groups.
	names := write("names.txt", "night\n")
	c.OC("adm", "prune", "groups", "--sync-config="+config, "--blacklist="+names, "--confirm")
	c.OC("adm", "prune", "groups", "--sync-config="+config, "--whitelist="+write("others.txt", "shop\n"), "--confirm")
	c.OC("get", "group", "night") // the group is on the blacklist, and is not on the whitelist
	c.OC("adm", "prune", "groups", "--sync-config="+config, "--whitelist="+names, "--confirm")
	if got := c.OC("get", "groups", "-o", "name"); strings.Contains(got, "night") || !strings.Contains(got, "shop") {
		t.Errorf("after pruning, the groups are %s", got)
	}
}
