from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations = [migrations.CreateModel("Article", [("id", models.BigAutoField(primary_key=True)), ("title", models.TextField())])]
