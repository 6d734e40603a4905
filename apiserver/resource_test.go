package apiserver

import (
	"context"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// sample returns a resource that uses most features of Resource, including a status.
func sample() Resource[*routev1.Route] {
	return Resource[*routev1.Route]{
		Plural: "routes", Namespaced: true, Status: true,
		Default: func(route *routev1.Route) {
			if route.Spec.WildcardPolicy == "" {
				route.Spec.WildcardPolicy = routev1.WildcardPolicyNone
			}
		},
		Prepare: func(_ context.Context, route, old *routev1.Route) {
			if old == nil {
				route.Spec.Path = "/"
			}
		},
		Validate: func(_ context.Context, route, old *routev1.Route) (errs field.ErrorList) {
			if old != nil && route.Spec.Host != old.Spec.Host {
				errs = append(errs, field.Forbidden(field.NewPath("spec", "host"), "cannot be changed"))
			}
			return errs
		},
		Warn: func(route, _ *routev1.Route) []string { return []string{"host is " + route.Spec.Host} },
		Fields: map[string]func(*routev1.Route) string{
			"spec.host": func(route *routev1.Route) string { return route.Spec.Host },
		},
		Columns: []Column[*routev1.Route]{
			{Name: "Host/Port", Value: func(route *routev1.Route) any { return route.Spec.Host }},
			{Name: "UID", Wide: true, Value: func(route *routev1.Route) any { return string(route.UID) }},
		},
	}
}

func route(change func(*routev1.Route)) *routev1.Route {
	result := &routev1.Route{
		ObjectMeta: metav1.ObjectMeta{Name: "front", Namespace: "shop", Generation: 3, ResourceVersion: "7"},
		Spec:       routev1.RouteSpec{Host: "www.example.com"},
		Status:     routev1.RouteStatus{Ingress: []routev1.RouteIngress{{RouterName: "router"}}},
	}
	if change != nil {
		change(result)
	}
	return result
}

func sampleScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme, _, err := schemes([]Group{{GroupVersion: routev1.GroupVersion, Install: routev1.Install, Resources: []Served{sample()}}})
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

func samplePlan(t *testing.T) strategy[*routev1.Route] {
	return newStrategy(sample(), sampleScheme(t), routev1.GroupVersion)
}

func TestPrepareForCreateResetsStatusAndGeneration(t *testing.T) {
	created := route(nil)
	samplePlan(t).PrepareForCreate(t.Context(), created)
	if created.Generation != 1 || created.Status.Ingress != nil || created.Spec.Path != "/" {
		t.Errorf("prepared %+v", created)
	}
}

func TestPrepareForUpdateKeepsStatusAndCountsGenerations(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*routev1.Route)
		want   int64
	}{
		"labels":            {func(r *routev1.Route) { r.Labels = map[string]string{"a": "b"} }, 3},
		"generation itself": {func(r *routev1.Route) { r.Generation = 99 }, 3},
		"status":            {func(r *routev1.Route) { r.Status.Ingress = nil }, 3},
		"specification":     {func(r *routev1.Route) { r.Spec.Path = "/shop" }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			changed := route(tt.change)
			samplePlan(t).PrepareForUpdate(t.Context(), changed, route(nil))
			if changed.Generation != tt.want || len(changed.Status.Ingress) != 1 {
				t.Errorf("generation %d, want %d; status %+v", changed.Generation, tt.want, changed.Status)
			}
		})
	}
}

func TestStatusUpdateChangesOnlyStatus(t *testing.T) {
	changed := route(func(r *routev1.Route) {
		r.Spec.Path, r.Labels, r.Status.Ingress[0].RouterName = "/shop", map[string]string{"a": "b"}, "other"
		r.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "router"}}
	})
	statusStrategy[*routev1.Route]{samplePlan(t)}.PrepareForUpdate(t.Context(), changed, route(nil))
	if changed.Spec.Path != "" || changed.Labels != nil || changed.Generation != 3 {
		t.Errorf("changed %+v", changed)
	}
	if changed.Status.Ingress[0].RouterName != "other" || len(changed.ManagedFields) != 1 {
		t.Errorf("lost status or managers: %+v", changed)
	}
}

func TestValidationSeesMetadataAndOldObject(t *testing.T) {
	plan := samplePlan(t)
	if errs := plan.Validate(t.Context(), route(nil)); len(errs) > 0 {
		t.Errorf("rejected: %v", errs)
	}
	if errs := plan.Validate(t.Context(), route(func(r *routev1.Route) { r.Name = "A_B" })); len(errs) != 1 || errs[0].Field != "metadata.name" {
		t.Errorf("name A_B: %v", errs)
	}
	if errs := plan.Validate(t.Context(), route(func(r *routev1.Route) { r.Namespace = "" })); len(errs) != 1 {
		t.Errorf("no namespace: %v", errs)
	}
	changed := route(func(r *routev1.Route) { r.Spec.Host = "other.example.com" })
	if errs := plan.ValidateUpdate(t.Context(), changed, route(nil)); len(errs) != 1 || errs[0].Field != "spec.host" {
		t.Errorf("other host: %v", errs)
	}
	if errs := (statusStrategy[*routev1.Route]{plan}).ValidateUpdate(t.Context(), changed, route(nil)); len(errs) > 0 {
		t.Errorf("status update is validated by the rules of the spec: %v", errs)
	}
	if got := plan.WarningsOnCreate(t.Context(), changed); !slices.Equal(got, []string{"host is other.example.com"}) {
		t.Errorf("warned %q", got)
	}
}

func TestDefaultsApplyToObjectsAndLists(t *testing.T) {
	scheme := sampleScheme(t)
	list := &routev1.RouteList{Items: []routev1.Route{*route(nil), *route(nil)}}
	item := route(nil)
	scheme.Default(list)
	scheme.Default(item)
	for _, r := range append(list.Items, *item) {
		if r.Spec.WildcardPolicy != routev1.WildcardPolicyNone {
			t.Errorf("wildcardPolicy is %q", r.Spec.WildcardPolicy)
		}
	}
}

func TestFieldSelectors(t *testing.T) {
	scheme := sampleScheme(t)
	kind := routev1.GroupVersion.WithKind("Route")
	for _, label := range []string{"metadata.name", "metadata.namespace", "spec.host"} {
		if _, _, err := scheme.ConvertFieldLabel(kind, label, "x"); err != nil {
			t.Errorf("%s: %v", label, err)
		}
	}
	if _, _, err := scheme.ConvertFieldLabel(kind, "spec.path", "x"); err == nil {
		t.Error("spec.path was accepted, but is not a field selector")
	}
	match := sample().predicate(labels.Everything(), fields.ParseSelectorOrDie("spec.host=www.example.com,metadata.namespace=shop"))
	if ok, err := match.Matches(route(nil)); !ok || err != nil {
		t.Errorf("the selector does not match: %v", err)
	}
	if ok, _ := match.Matches(route(func(r *routev1.Route) { r.Spec.Host = "x" })); ok {
		t.Error("the selector matches another host")
	}
}

func TestTable(t *testing.T) {
	columns := Table(sample().Columns)
	list := &routev1.RouteList{Items: []routev1.Route{*route(nil), *route(nil)}, ListMeta: metav1.ListMeta{Continue: "next", ResourceVersion: "9"}}
	got, err := columns.ConvertToTable(t.Context(), list, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var heads []string
	for _, column := range got.ColumnDefinitions {
		heads = append(heads, column.Name)
	}
	if strings.Join(heads, ",") != "Name,Host/Port,UID" || got.ColumnDefinitions[2].Priority != 1 {
		t.Errorf("columns are %+v", got.ColumnDefinitions)
	}
	if len(got.Rows) != 2 || got.Rows[0].Cells[1] != "www.example.com" || got.Continue != "next" || got.ResourceVersion != "9" {
		t.Errorf("table is %+v", got)
	}
	if got, err = columns.ConvertToTable(t.Context(), route(nil), &metav1.TableOptions{NoHeaders: true}); err != nil || len(got.Rows) != 1 || got.ColumnDefinitions != nil {
		t.Errorf("table of one object is %+v, %v", got, err)
	}
	if _, err := columns.ConvertToTable(t.Context(), &metav1.Status{}, nil); err == nil {
		t.Error("printed a status as a route")
	}
}

func TestAgeHasFormOfKubectl(t *testing.T) {
	if got := Age[*routev1.Route]().Value(route(nil)); got != "<unknown>" {
		t.Errorf("age is %v", got)
	}
}
