"""Notes in Django REST framework with its defaults. Usage: django_rest.py DIRECTORY HOST:PORT"""

import sys
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command, execute_from_command_line
from django.urls import include, path

directory, address = sys.argv[1:]
settings.configure(
    SECRET_KEY="of a test",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "rest_framework"],
    MIDDLEWARE=["django.middleware.http.ConditionalGetMiddleware", "django.middleware.common.CommonMiddleware"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": Path(directory) / "notes.sqlite"}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    USE_TZ=True,
)
django.setup()

from django.db import connection, models  # noqa: E402
from rest_framework import routers, serializers, viewsets  # noqa: E402


class Note(models.Model):
    text = models.TextField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        app_label = "notes"


class NoteSerializer(serializers.ModelSerializer):
    class Meta:
        model = Note
        fields = ["id", "text", "updated_at"]


class NoteViewSet(viewsets.ModelViewSet):
    queryset = Note.objects.all()
    serializer_class = NoteSerializer


router = routers.DefaultRouter()
router.register("notes", NoteViewSet)
urlpatterns = [path("", include(router.urls))]

with connection.schema_editor() as editor:
    editor.create_model(Note)
call_command("migrate", verbosity=0)
execute_from_command_line(["manage.py", "runserver", "--noreload", address])
