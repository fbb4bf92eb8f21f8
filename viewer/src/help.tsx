// Help: what attention shows and does not show, and every action with its key.

import { actions } from "./actions";
import { keyName } from "./button";
import { Dialog } from "./dialog";
import { help } from "./store";
import { say } from "./strings";

export function Help() {
  return (
    <Dialog id="help" title={say("helpTitle")} open={help.value} close={() => (help.value = false)}>
      <h3>{say("helpMeaning")}</h3>
      <p>{say("helpShows")}</p>
      <p>
        <strong>{say("helpNotTitle")}</strong> {say("helpNot")}
      </p>
      <p>{say("helpMax")}</p>
      <h3>{say("helpKeys")}</h3>
      <p>
        {say("helpPointer")} {say("actionShift")}
      </p>
      <table class="keys">
        <thead>
          <tr>
            <th scope="col">{say("helpKey")}</th>
            <th scope="col">{say("helpAction")}</th>
          </tr>
        </thead>
        <tbody>
          {actions().map((each) => (
            <tr key={each.id}>
              <td>
                {each.keys.map((key) => (
                  <kbd key={key}>{keyName(key)}</kbd>
                ))}
              </td>
              <td>{say(each.label)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Dialog>
  );
}
