package application

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// databases maps the sample databases to commands that write and read a value. The commands connect
// through the service as the template's user.
var databases = map[string]struct{ write, read string }{
	"postgresql": {
		`PGPASSWORD=$POSTGRESQL_PASSWORD psql -qh postgresql -U $POSTGRESQL_USER $POSTGRESQL_DATABASE -c "CREATE TABLE t (v text)" -c "INSERT INTO t VALUES ('kept')"`,
		`PGPASSWORD=$POSTGRESQL_PASSWORD psql -qAth postgresql -U $POSTGRESQL_USER $POSTGRESQL_DATABASE -c "SELECT v FROM t"`,
	},
	"mariadb": {
		`mysql -h mariadb -u $MYSQL_USER -p$MYSQL_PASSWORD $MYSQL_DATABASE -e "CREATE TABLE t (v TEXT); INSERT INTO t VALUES ('kept')"`,
		`mysql -Nh mariadb -u $MYSQL_USER -p$MYSQL_PASSWORD $MYSQL_DATABASE -e "SELECT v FROM t"`,
	},
	"redis": {`REDISCLI_AUTH=$REDIS_PASSWORD redis-cli -h redis set v kept`, `REDISCLI_AUTH=$REDIS_PASSWORD redis-cli -h redis get v`},
}

// selected returns the samples that a test runs. SLIPWAY_TEST_SAMPLES contains their names. `make
// samples` sets it to "all", which selects all samples. If it is unset, selected returns usual.
func selected(all, usual []string) (samples []string) {
	names := os.Getenv("SLIPWAY_TEST_SAMPLES")
	switch names {
	case "":
		return usual
	case "all":
		return all
	}
	for _, name := range strings.Split(names, ",") {
		if slices.Contains(all, name) {
			samples = append(samples, name)
		}
	}
	return samples
}

func TestDatabaseOfSampleKeepsItsData(t *testing.T) {
	for _, name := range selected([]string{"postgresql", "mariadb", "redis"}, []string{"postgresql"}) {
		t.Run(name, func(t *testing.T) { checkDatabase(t, kit.Shared(t), name) })
	}
}

// The bundle's test playbook creates a database in a project, and then a table in the database.
func TestDatabaseOfSampleIsOrderedAsBundle(t *testing.T) {
	for _, name := range selected([]string{"postgresql", "mariadb"}, nil) {
		t.Run(name, func(t *testing.T) {
			c := kit.Shared(t)
			c.BuildSample(name, "")
			c.BuildSample(name+"-apb", "apb-base")
			for _, plan := range []string{"dev", "prod"} {
				if result := c.Slipway("catalog", "test", name+"-apb", "--plan="+plan); result.Code != 0 {
					t.Errorf("plan %s: %s%s", plan, result.Stdout, result.Stderr)
				}
			}
		})
	}
}

func checkDatabase(t *testing.T, c *kit.Cluster, name string) {
	user := []string{"--as=alice", "--as-group=system:authenticated"}
	c.OC("policy", "add-role-to-user", "admin", "alice")
	template := name + "-persistent"
	if output, err := c.TryOC(append([]string{"new-app", template}, user...)...); err == nil || !strings.Contains(err.Error(), ": slipway samples build "+name) {
		t.Errorf("without the image, new-app prints %s, %v", output, err)
	}
	c.BuildSample(name, "")
	if output := c.OC(append([]string{"new-app", template}, user...)...); !strings.Contains(output, "Connection Password") {
		t.Errorf("oc new-app prints %s", output)
	}
	c.OC("rollout", "status", "dc/"+name)
	pod := c.OnlyPod("name=" + name).Name
	c.Exec(pod, "bash", "-c", databases[name].write)
	if id := strings.TrimSpace(c.Exec(pod, "id", "-u")); len(id) < 5 {
		t.Errorf("the database runs as user %s, which is not in the project's range", id)
	}
	c.OC("delete", "pod", pod, "--wait=false")
	c.WaitFor("data in a new pod", func(context.Context) error {
		value, err := c.TryOC("rsh", "dc/"+name, "bash", "-c", databases[name].read)
		if current := c.OC("get", "pods", "-l", "name="+name, "-o", "name"); strings.Contains(current, pod) {
			return fmt.Errorf("the first pod still exists: %s", current)
		}
		if err == nil && strings.TrimSpace(value) != "kept" {
			err = fmt.Errorf("the database returns %q", value)
		}
		return err
	})
	if os.Getenv("SLIPWAY_TEST_SAMPLES") != "" { // unset in `make test`, to save time
		c.OC("new-app", name+"-ephemeral", "-p", "DATABASE_SERVICE_NAME=temporary")
		c.OC("rollout", "status", "dc/temporary")
	}
}
