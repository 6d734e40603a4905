package apiserver

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Column is one column of a resource's table.
type Column[T Object] struct {
	// Name is its heading, which clients print in capitals.
	Name string
	// Description explains it to programs.
	Description string
	// Wide shows it only with `-o wide`.
	Wide bool
	// Value is an object's cell: a string, a number or a boolean.
	Value func(T) any
}

// Age is the column that says how long ago an object was made, in kubectl's form ("5m", "3d2h").
func Age[T Object]() Column[T] {
	return Column[T]{Name: "Age", Description: "Time since the object was created", Value: func(object T) any {
		return Since(object.GetCreationTimestamp())
	}}
}

// Since is the time that has passed since t in kubectl's form.
func Since(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t.Time))
}

// Table makes the tables of a resource: its name, then columns.
func Table[T Object](columns []Column[T]) rest.TableConvertor { return table[T](columns) }

type table[T Object] []Column[T]

// ConvertToTable makes the table of an object or of a list.
func (columns table[T]) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	made := &metav1.Table{}
	if headless, ok := options.(*metav1.TableOptions); !ok || !headless.NoHeaders {
		made.ColumnDefinitions = columns.definitions()
	}
	list, isList := object.(metav1.ListInterface)
	if accessor, ok := object.(metav1.ListMetaAccessor); ok {
		list, isList = accessor.GetListMeta(), true
	}
	if !isList {
		one, ok := object.(T)
		if !ok {
			return nil, fmt.Errorf("print %T: not a %T", object, *new(T))
		}
		made.ResourceVersion = one.GetResourceVersion()
		made.Rows = []metav1.TableRow{columns.row(one)}
		return made, nil
	}
	made.ResourceVersion, made.Continue = list.GetResourceVersion(), list.GetContinue()
	made.RemainingItemCount = list.GetRemainingItemCount()
	return made, meta.EachListItem(object, func(item runtime.Object) error {
		made.Rows = append(made.Rows, columns.row(item.(T)))
		return nil
	})
}

func (columns table[T]) definitions() []metav1.TableColumnDefinition {
	definitions := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: "Name of the object"}}
	for _, column := range columns {
		definition := metav1.TableColumnDefinition{Name: column.Name, Type: "string", Description: column.Description}
		if column.Wide {
			definition.Priority = 1
		}
		definitions = append(definitions, definition)
	}
	return definitions
}

func (columns table[T]) row(object T) metav1.TableRow {
	cells := []any{object.GetName()}
	for _, column := range columns {
		cells = append(cells, column.Value(object))
	}
	return metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: object}}
}
